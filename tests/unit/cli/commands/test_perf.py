from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.cli.commands.perf import ProduceLoad, command
from millbeck.client.producer import RecordMetadata
from millbeck.kernel.errors import MessageTooLarge


class FakeProducer:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def enqueue(self, topic: str, value: bytes) -> asyncio.Future[RecordMetadata]:
        self.sent.append(value)
        if value == b"stuck":
            await asyncio.Event().wait()
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        if value == b"bad":
            future.set_exception(MessageTooLarge())
        else:
            future.set_result(RecordMetadata(topic, 0, 0, 0))
        return future

    async def flush(self) -> None:
        await asyncio.sleep(0)


def load(count: int, payloads: list[bytes], rate: float = -1) -> tuple[FakeProducer, ProduceLoad, Any]:
    producer: Any = FakeProducer()

    async def work() -> tuple[FakeProducer, ProduceLoad, Any]:
        sending = ProduceLoad(producer, "t", payloads, rate=rate)
        await sending.send(count)
        return producer, sending, sending.throughput

    return asyncio.run(work())


def test_payloads_are_sent_in_turn_and_counted() -> None:
    producer, sending, result = load(5, [b"one", b"three"])
    assert producer.sent == [b"one", b"three", b"one", b"three", b"one"]
    assert (result.record_count, result.size_bytes) == (5, 19)
    assert sending.latencies.count == 5
    assert sending.failed == 0


def test_a_rate_is_kept() -> None:
    _, _, result = load(20, [b"x"], rate=1000)
    assert result.elapsed_s >= 0.019


def test_what_was_acknowledged_before_an_interruption_is_known() -> None:
    async def work() -> ProduceLoad:
        producer: Any = FakeProducer()
        sending = ProduceLoad(producer, "t", [b"one", b"three", b"stuck"], rate=-1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await sending.send(10)
        return sending

    sending = asyncio.run(work())
    assert (sending.throughput.record_count, sending.throughput.size_bytes) == (2, 8)
    assert sending.throughput.elapsed_s < 0.05


def test_failures_are_counted_apart() -> None:
    _, sending, _ = load(4, [b"x", b"bad"])
    assert (sending.failed, sending.latencies.count) == (2, 2)
    assert isinstance(sending.first_error, MessageTooLarge)


def test_usage(fails: Callable[..., str]) -> None:
    assert "no topic given" in fails("perf", "produce", "--num-records", "1")
    assert "exactly one topic is needed" in fails("perf", "consume", "a", "--topic", "b")
    assert "--num-records" in fails("perf", "produce", "--topic", "x")
    assert "not in the range" in fails("perf", "consume", "--topic", "x", "--messages", "0")


def test_a_timeout_needs_no_value() -> None:
    consume = command.commands["consume"]
    for given, timeout_ms in (
        (["t"], 10_000),
        (["--timeout", "-t", "t"], 10_000),
        (["--timeout", "5", "-t", "t"], 5),
        (["-t", "t", "--timeout"], 10_000),
    ):
        assert consume.make_context("consume", given).params["timeout_ms"] == timeout_ms


@pytest.mark.parametrize("verb", ["produce", "consume"])
def test_nobody_there(fails: Callable[..., str], verb: str) -> None:
    extra = ["--num-records", "1"]
    assert "no broker reached" in fails("perf", verb, "--topic", "x", *extra, "-b", "127.0.0.1:1")
