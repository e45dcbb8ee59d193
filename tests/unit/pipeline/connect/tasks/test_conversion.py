"""From records of connectors to bytes of the log, and back."""

from __future__ import annotations

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from millbeck.pipeline.connect.model.record import ConnectHeader, SourceRecord
from millbeck.pipeline.connect.model.schema import STRING_SCHEMA
from millbeck.pipeline.connect.tasks.conversion import Conversion, EncodedRecord, StoredRecord
from millbeck.pipeline.connect.tasks.tolerance import RecordFailed, Stage

PLAIN = {
    "key.converter": "StringConverter",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
}
ORIGIN = TopicPartition("orders", 1)


def test_a_record_goes_to_the_log_and_back() -> None:
    conversion = Conversion({}, PLAIN)
    record = SourceRecord(
        topic="orders", key="k", value={"id": 5}, timestamp=7, headers=(ConnectHeader("trace", STRING_SCHEMA, "abc"),)
    )
    encoded = conversion.encoded(record)
    assert encoded is not None
    assert encoded == EncodedRecord("orders", None, 7, b"k", b'{"id":5}', (("trace", b"abc"),))
    back = conversion.decoded(ORIGIN, StoredRecord(9, 7, encoded.key, encoded.value, encoded.headers))
    assert back is not None
    assert (back.key, back.value, back.offset, back.timestamp, back.origin) == ("k", {"id": 5}, 9, 7, ORIGIN)
    assert back.headers[0].value == "abc"


def test_the_worker_converters_count_only_where_the_connector_names_none() -> None:
    # The settings of the worker's JsonConverter are not for the connector's own.
    conversion = Conversion({"value.converter": "JsonConverter"}, PLAIN)
    encoded = conversion.encoded(SourceRecord(topic="orders", value_schema=STRING_SCHEMA, value="x"))
    assert encoded is not None
    assert encoded.value == b'{"schema":{"type":"string","optional":false},"payload":"x"}'


def test_where_a_record_failed_is_told() -> None:
    conversion = Conversion(
        {"transforms": "c", "transforms.c.type": "Cast$Value", "transforms.c.spec": "id:int8"}, PLAIN
    )
    with pytest.raises(RecordFailed) as caught:
        conversion.decoded(ORIGIN, StoredRecord(0, 1, None, b"{", ()))
    assert caught.value.stage is Stage.VALUE_CONVERTER
    assert caught.value.class_name == "org.apache.kafka.connect.json.JsonConverter"
    with pytest.raises(RecordFailed) as caught:
        conversion.decoded(ORIGIN, StoredRecord(0, 1, None, b'{"id":"x"}', ()))
    assert caught.value.stage is Stage.TRANSFORMATION
    assert caught.value.class_name == "org.apache.kafka.connect.transforms.Cast$Value"


def test_an_outage_of_a_converter_is_no_failure_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    conversion = Conversion({}, PLAIN)

    def down(topic: object, stored: object) -> object:
        raise RetriableError("the registry is down")

    monkeypatch.setattr(conversion._value, "from_bytes", down)
    with pytest.raises(RetriableError):
        conversion.decoded(ORIGIN, StoredRecord(0, 1, None, b"{}", ()))


def test_a_dropped_record_and_one_without_a_topic() -> None:
    settings = {"transforms": "f", "transforms.f.type": "Filter"}
    assert Conversion(settings, PLAIN).encoded(SourceRecord(topic="orders", value=1)) is None
    with pytest.raises(ConfigError, match="no topic"):
        Conversion({}, PLAIN).encoded(SourceRecord(topic=None, value=1))
