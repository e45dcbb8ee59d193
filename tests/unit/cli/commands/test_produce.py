from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from millbeck.cli.commands import produce
from millbeck.cli.commands.produce import INTERRUPTED_SECONDS_MAX, DeliveryCounts, LineProducer, lines_of
from millbeck.cli.outage_messages import LEADERLESS_SECONDS
from millbeck.cli.records.record_lines import LineReader
from millbeck.client.producer import RecordMetadata
from millbeck.kernel.errors import MessageTooLarge
from tests.unit.client.fake_cluster import FakeCluster, simulate


async def gathered(source: Any, delimiter: bytes) -> list[bytes]:
    return [line async for line in lines_of(source, delimiter)]


class Trickle(io.BytesIO):
    """Comes in pieces of three bytes."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(3)


LINES = {
    "the last line needs no end": (b"one\ntwo", b"\n", [b"one", b"two"]),
    "an end is not an empty line": (b"one\ntwo\n", b"\n", [b"one", b"two"]),
    "empty lines count": (b"\n\none\n", b"\n", [b"", b"", b"one"]),
    "a delimiter cut in two": (b"one--two--", b"--", [b"one", b"two"]),
    "nothing": (b"", b"\n", []),
}


@pytest.mark.parametrize(("text", "delimiter", "expected"), LINES.values(), ids=LINES.keys())
def test_lines_come_whole_however_they_arrive(text: bytes, delimiter: bytes, expected: list[bytes]) -> None:
    assert asyncio.run(gathered(io.BytesIO(text), delimiter)) == expected
    assert asyncio.run(gathered(Trickle(text), delimiter)) == expected


def test_a_line_without_an_end_is_given_up_soon() -> None:
    class Endless(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return b"x" * (size or 1)

    with pytest.raises(click.ClickException, match="a line is longer than 67108864 bytes"):
        asyncio.run(gathered(Endless(), b"\n"))


def test_lines_come_from_a_descriptor_too(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\n" * 20_000)
    with path.open("rb") as file:
        assert asyncio.run(gathered(file, b"\n")) == [b"one", b"two"] * 20_000


def test_a_source_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file, pytest.raises(OSError, match="Bad file descriptor"):
        asyncio.run(gathered(file, b"\n"))


class FakeProducer:
    def __init__(self, failing: bytes = b"bad") -> None:
        self.sent: list[dict[str, Any]] = []
        self._failing = failing

    async def enqueue(self, topic: str, value: bytes | None, **fields: Any) -> asyncio.Future[RecordMetadata]:
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        self.sent.append({"topic": topic, "value": value, **fields})
        if value == self._failing:
            future.set_exception(MessageTooLarge("too much"))
        else:
            future.set_result(RecordMetadata(topic, 0, len(self.sent) - 1, 0))
        return future

    async def flush(self) -> None:
        await asyncio.sleep(0)


def send(text: bytes, form: LineReader, *, waits: bool = True) -> tuple[FakeProducer, DeliveryCounts]:
    producer: Any = FakeProducer()
    tally = DeliveryCounts(shows_progress=False, verbose=False)

    async def work() -> None:
        sending = LineProducer(
            producer, "t", form, key=b"fixed", headers=(("x", b"1"),), partition=2, waits=waits, tally=tally
        )
        await sending.send_all(io.BytesIO(text), b"\n")
        await asyncio.sleep(0)

    asyncio.run(work())
    return producer, tally


def test_every_line_becomes_a_record() -> None:
    producer, tally = send(b"k:1\n2\n", LineReader(key_separator=b":"))
    assert [(each["key"], each["value"]) for each in producer.sent] == [(b"k", b"1"), (b"fixed", b"2")]
    assert all(each["headers"] == (("x", b"1"),) and each["partition"] == 2 for each in producer.sent)
    tally.finish()
    assert (tally.sent, tally.acknowledged) == (2, 2)


def test_a_record_that_fails_ends_it() -> None:
    producer, tally = send(b"1\nbad\n3\n", LineReader())
    assert len(producer.sent) == 2
    with pytest.raises(click.ClickException, match=r"1 of 2 records .* too much \(MESSAGE_TOO_LARGE\)"):
        tally.finish()


def test_a_line_without_its_parts_is_named() -> None:
    with pytest.raises(click.ClickException, match="line 2: the line has no key; 1 lines were sent"):
        send(b"k:1\n2\n", LineReader(key_separator=b":", key_is_required=True))


def test_what_was_read_before_an_interruption_is_sent() -> None:
    class Unhurried(FakeProducer):
        """Acknowledges when it is flushed."""

        def __init__(self) -> None:
            super().__init__()
            self.waiting: list[asyncio.Future[RecordMetadata]] = []
            self.flushed: list[float | None] = []

        async def enqueue(self, topic: str, value: bytes | None, **fields: Any) -> asyncio.Future[RecordMetadata]:
            self.waiting.append(asyncio.get_running_loop().create_future())
            return self.waiting[-1]

        async def flush(self, timeout_s: float | None = None) -> None:
            self.flushed.append(timeout_s)
            for future in self.waiting:
                future.set_result(RecordMetadata("t", 0, 0, 0))
            await asyncio.sleep(0)

    producer: Any = Unhurried()
    tally = DeliveryCounts(shows_progress=False, verbose=False)
    reading, writing = os.pipe()

    async def work() -> None:
        sending = LineProducer(
            producer, "t", LineReader(), key=None, headers=(), partition=None, waits=False, tally=tally
        )
        with open(reading, "rb", buffering=0) as source:
            running = asyncio.ensure_future(sending.run(source, b"\n"))
            os.write(writing, b"one\n")
            while not producer.waiting:
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            os.close(writing)

    asyncio.run(work())
    assert producer.flushed == [INTERRUPTED_SECONDS_MAX]
    tally.finish()
    assert (tally.sent, tally.acknowledged) == (1, 1)


USAGE = {
    "no topic": (("produce",), "name one topic"),
    "two topics": (("produce", "a", "-t", "b"), "name one topic"),
    "a codec nobody has": (("produce", "a", "-z", "rar"), "is not one of"),
    "acks nobody has": (("produce", "a", "--acks", "2"), "is not one of"),
    "a property nobody has": (("produce", "a", "--property", "parse.cats=true"), "parse.cats is not one of"),
    "nothing between records": (("produce", "a", "-D", ""), "--delimiter must not be empty"),
    "a header without a value": (("produce", "a", "-H", "x"), "--header: expected key=value"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments, stdin=b"")


def test_a_partition_without_a_leader_is_named_while_its_records_wait(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reachable(*_: object) -> None: ...

    async def send_one(sending: Any, *_: object) -> None:
        await sending._producer.send("a", b"line")

    monkeypatch.setattr(produce, "check_reachable", reachable)
    monkeypatch.setattr(LineProducer, "run", send_one)

    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        log.leader_id = -1
        works: list[Any] = []
        monkeypatch.setattr(produce, "run", works.append)
        produce.command.main(["a", "-b", cluster.bootstrap], standalone_mode=False)
        producing = asyncio.ensure_future(works[0](cluster.environment))
        await asyncio.sleep(2 * LEADERLESS_SECONDS)
        assert capsys.readouterr().err.startswith("millbeck: no leader, so records are not written for now: a-0;")
        log.leader_id = 1
        await producing
        assert log.values == [b"line"]

    simulate(scenario)
