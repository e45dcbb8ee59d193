"""Makes the data directory that is kept for each release: ``python tests/e2e/kept_directory.py VERSION``.

The directory and what must be found in it (records, committed offsets, settings) go to
``tests/fixtures/directories/VERSION.tar.gz`` and ``VERSION.json``. Every later release opens every one of them.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millbeck.testing import broker

FIXTURES = Path(__file__).parents[1] / "fixtures" / "directories"
Headers = list[tuple[str, str | bytes | None]]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def fill(bootstrap: str) -> dict[str, Any]:
    """Write topics, records of every codec, and a group's offsets; what a reader must find."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic("plain", 2, 1),
        NewTopic("small-segments", 1, 1, config={"segment.bytes": "1048576", "retention.ms": "-1"}),
        NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        NewTopic("gone", 1, 1),
    ]
    for made in admin.create_topics(topics).values():
        made.result(30)
    expected: dict[str, list[list[Any]]] = {}
    for codec in CODECS:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, "linger.ms": 50}
        )
        for number in range(40):
            for topic, partition in (("plain", number % 2), ("small-segments", 0), ("stamped", 0)):
                key, value = f"{codec}-{number}", f"value of {codec} {number} " + "x" * 50
                headers: list[tuple[str, str | bytes | None]] = [
                    ("codec", codec.encode()),
                    ("empty", b""),
                    ("codec", b"again"),
                ]
                producer.produce(topic, value, key, partition, headers=headers)
                expected.setdefault(f"{topic}-{partition}", []).append([key, value])
        assert producer.flush(30) == 0
    admin.delete_topics(["gone"])["gone"].result(30)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "kept", "enable.auto.commit": False})
    committed = {"plain-0": 17, "plain-1": 3, "stamped-0": 200}
    offsets = [TopicPartition(*split(name), offset) for name, offset in committed.items()]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return {"records": expected, "committed": committed, "settings": {"small-segments": {"retention.ms": "-1"}}}


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def main(version: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "data"
        with broker(data=data) as node:
            expected = fill(node.bootstrap)
            node.stop()
            node.start()  # a second epoch, and a log that was opened once
        FIXTURES.mkdir(parents=True, exist_ok=True)
        (FIXTURES / f"{version}.json").write_text(json.dumps(expected, indent=1) + "\n")
        with tarfile.open(FIXTURES / f"{version}.tar.gz", "w:gz") as archive:
            archive.add(data, "data")


if __name__ == "__main__":
    main(sys.argv[1])
