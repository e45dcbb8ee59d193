"""The object-store connectors on S3, as moto speaks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

pytest.importorskip("moto")
pytest.importorskip("flask")
pytest.importorskip("obstore")

import boto3
from moto.server import ThreadedMotoServer

from millbeck.pipeline.connect.connectors.objects.sink import ObjectSink
from millbeck.pipeline.connect.connectors.objects.source import ObjectSource
from millbeck.pipeline.connect.connectors.objects.stores import ObjectFiles
from millbeck.pipeline.connect.errors import ConnectError, RetriableError
from millbeck.pipeline.connect.model.record import SinkRecord
from tests.unit.pipeline.connect.connectors.listed_records import made, sink_record, written

FORMATS = ("ParquetFormat", "AvroFormat", "JsonFormat")


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, request: pytest.FixtureRequest) -> str:
    name = f"bucket-{abs(hash(request.node.name))}"
    client = boto3.client(
        "s3", endpoint_url=s3, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-west-2"
    )
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    return name


def settings(s3: str, bucket: str, **more: str) -> dict[str, str]:
    given = {
        "store.url": s3,
        "s3.bucket.name": bucket,
        "aws.access.key.id": "key",
        "aws.secret.access.key": "secret",
        "format.class": "JsonFormat",
    }
    return given | {name.replace("_", "."): text for name, text in more.items()}


class Positions:
    def get(self, partition: Mapping[str, Any]) -> None:
        return None


@pytest.mark.parametrize("form", FORMATS)
def test_records_come_back_from_a_bucket(s3: str, bucket: str, form: str) -> None:
    from tests.unit.pipeline.connect.connectors.objects.test_sink import generated

    given = settings(s3, bucket, format_class=form)
    records = generated(50)
    by_field = {"flush.size": "10", "partitioner.class": "FieldPartitioner", "partition.field.name": "words"}
    with_words: list[SinkRecord] = [each for each in records if each.value["words"] is not None]
    sink: ObjectSink = made(ObjectSink, given | by_field)
    assert not list(sink.check())
    listed = written(sink, with_words)
    again = written(made(ObjectSink, given | by_field), with_words)
    assert listed.stops == again.stops
    source: ObjectSource = made(ObjectSource, given)
    positions: Any = Positions()
    found: list[Any] = [item for share in source.plan(positions).shares for item in source.read(share)]
    whole = len(with_words) // 10 * 10
    assert sorted(item.value["id"] for item in found) == [each.value["id"] for each in with_words[:whole]]


def test_a_large_object_appears_whole(s3: str, bucket: str) -> None:
    files = ObjectFiles(made(ObjectSink, settings(s3, bucket) | {"flush.size": "1"}).values)
    content = bytes(range(256)) * 50_000
    files.put(files.path("a", "b+0+1.bin"), content)
    assert files.get(files.path("a", "b+0+1.bin")) == content
    assert files.list(files.path("a")) == [("topics/a/b+0+1.bin", len(content))]


def test_a_missing_bucket_is_named_and_a_missing_server_is_waited_for(s3: str) -> None:
    missing: ObjectSink = made(ObjectSink, settings(s3, "no-such-bucket") | {"flush.size": "1"})
    [problem] = missing.check()
    assert problem.setting == "store.url"
    assert "secret" not in problem.problem
    with pytest.raises(ConnectError, match=r"s3\.bucket\.name") as caught:
        written(missing, [sink_record(0, None, {"id": 1})])
    assert not isinstance(caught.value, RetriableError)


def test_a_server_that_is_down_is_no_mistake() -> None:
    down: ObjectSink = made(ObjectSink, settings("http://127.0.0.1:1", "bucket") | {"flush.size": "1"})
    assert not list(down.check())
    with pytest.raises(RetriableError):
        written(down, [sink_record(0, None, {"id": 1})])
