"""The data directory of every release opens under this one, with every record, offset and setting."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from millbeck.cli.main import cli
from millbeck.client.blocking import Blocking
from millbeck.client.producer import Producer as AsyncProducer
from millbeck.client.share import ShareConsumer
from millbeck.testing import Broker, broker
from tests.e2e.kept_directory import FIXTURES, split

RELEASES = sorted(path.stem for path in FIXTURES.glob("*.json"))


def test_there_is_one_for_this_release() -> None:
    assert RELEASES


def _text(field: bytes | None) -> str:
    assert field is not None
    return field.decode()


def unpack(release: str, directory: Path) -> None:
    with tarfile.open(FIXTURES / f"{release}.tar.gz") as archive:
        # The argument came with 3.11.4; the archive is our own.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(directory)


@pytest.mark.parametrize("release", RELEASES)
def test_everything_is_found(release: str, tmp_path: Path) -> None:
    expected = json.loads((FIXTURES / f"{release}.json").read_text())
    unpack(release, tmp_path)
    with broker(data=tmp_path / "data") as node:
        consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": "kept", "enable.auto.commit": False})
        for name, records in expected["records"].items():
            consumer.assign([TopicPartition(*split(name), 0)])
            found = consumer.consume(len(records), timeout=30)
            assert [[_text(message.key()), _text(message.value())] for message in found] == records, name
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


def levels(node: Broker) -> dict[str, str]:
    rows = json.loads(millbeck(node, "feature", "describe", "--output", "json"))
    return {row["feature"]: row["finalized"] for row in rows}


def millbeck(node: Broker, *arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--bootstrap-server", node.bootstrap], prog_name="millbeck")
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_old_directory_is_raised_to_what_new_ones_begin_with_and_everything_works(tmp_path: Path) -> None:
    unpack(RELEASES[0], tmp_path)
    with broker(data=tmp_path / "data", group_share_min_record_lock_duration_ms=1000) as node:
        assert {name for name, level in levels(node).items() if level == "0"} >= {
            "group.version",
            "share.version",
            "transaction.version",
        }
        assert "transaction.version would be at level 2" in millbeck(
            node, "feature", "upgrade", "--release-version", "4.3", "--dry-run"
        )
        millbeck(node, "feature", "upgrade", "--release-version", "4.3")
        raised = levels(node)
        assert (raised["group.version"], raised["transaction.version"], raised["share.version"]) == ("1", "2", "1")
        transact(node)
        assert consumed(node, **{"group.protocol": "consumer"}) == [b"kept"]
        assert shared(node) == [b"kept"]
        # Nothing is left to raise, and the levels outlast a restart.
        assert "group.version" not in millbeck(node, "feature", "upgrade", "--release-version", "4.3")
        node.restart()
        assert levels(node) == raised
        assert consumed(node, **{"group.protocol": "consumer", "group.id": "later"}) == [b"kept"]


def transact(node: Broker) -> None:
    """One transaction that is committed, and one that is not, under the epochs of transaction version 2."""
    with Blocking() as blocking:
        settings = {"bootstrap.servers": node.bootstrap, "transactional.id": "raised"}
        producer = blocking.make(lambda environment: AsyncProducer(settings, environment=environment))
        blocking.run(producer.init_transactions())
        assert producer.transactions.is_version_2
        for value, end in ((b"lost", producer.abort_transaction), (b"kept", producer.commit_transaction)):
            producer.begin_transaction()
            blocking.run(producer.enqueue("raised", value))
            blocking.run(producer.flush())
            blocking.run(end())


def consumed(node: Broker, **settings: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": "raised",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **settings,
        }
    )
    consumer.subscribe(["raised"])
    found = consumer.consume(1, timeout=30)
    consumer.close()
    return [message.value() or b"" for message in found]


def shared(node: Broker) -> list[bytes | None]:
    options = "share.auto.offset.reset=earliest,share.isolation.level=read_committed"
    millbeck(node, "config", "alter", "--group", "sharers", "--add-config", options)
    with Blocking() as blocking:
        settings = {"bootstrap.servers": node.bootstrap, "group.id": "sharers"}
        consumer = blocking.make(lambda environment: ShareConsumer(settings, environment=environment))
        consumer.subscribe(["raised"])
        for _ in range(30):
            found = blocking.run(consumer.poll(timeout_s=1.0))
            if found:
                return [each.record.value for each in found]
    return []
