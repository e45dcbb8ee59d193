"""The data directory of every release opens under this one, with every record, offset and setting."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from kept_directory import FIXTURES, split

from millbeck.testing import broker

RELEASES = sorted(path.stem for path in FIXTURES.glob("*.json"))


def test_there_is_one_for_this_release() -> None:
    assert RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_everything_is_found(release: str, tmp_path: Path) -> None:
    expected = json.loads((FIXTURES / f"{release}.json").read_text())
    with tarfile.open(FIXTURES / f"{release}.tar.gz") as archive:
        # The argument came with 3.11.4; the archive is our own.
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    with broker(data=tmp_path / "data") as node:
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "kept", "enable.auto.commit": False})
        for name, records in expected["records"].items():
            consumer.assign([TopicPartition(*split(name), 0)])
            found = consumer.consume(len(records), timeout=30)
            assert [[message.key().decode(), message.value().decode()] for message in found] == records, name
            assert [message.offset() for message in found] == list(range(len(records)))
            assert found[0].headers() == [("codec", b"none"), ("empty", b""), ("codec", b"again")]
        wanted = [TopicPartition(*split(name)) for name in expected["committed"]]
        committed = {f"{each.topic}-{each.partition}": each.offset for each in consumer.committed(wanted, timeout=30)}
        assert committed == expected["committed"]
        consumer.close()
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        assert "gone" not in admin.list_topics(timeout=30).topics
        for topic, settings in expected["settings"].items():
            resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
            described = admin.describe_configs([resource])[resource].result(30)
            assert {name: described[name].value for name in settings} == settings
