"""What every stream promises: order, release of each slice exactly once, back-pressure, and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.kernel.environment import Environment, File, FileSlice, OpenMode, SocketBuffers

if TYPE_CHECKING:
    from tests.contract.conftest import Machine

FILE_SIZE = 3 << 20
SMALL_BUFFER = 128 << 10  # small enough to fill; the smallest one is in the unit tests, where little is sent through it
CONTENT = bytes((index * 7 + index // 256) % 256 for index in range(1 << 16)) * (FILE_SIZE >> 16)


@dataclass
class Releases:
    """Counts how often each slice was let go."""

    counts: list[int] = field(default_factory=list)

    def slice(self, file: File, position: int, size: int) -> FileSlice:
        number = len(self.counts)
        self.counts.append(0)

        def release() -> None:
            self.counts[number] += 1

        return FileSlice(file, position, size, release)


class Sender(asyncio.Protocol):
    """The server's end: owns a stream and forwards the two calls it must."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.made = asyncio.Event()
        self.secured = asyncio.Event()
        self.lost = asyncio.Event()
        self.drained_count = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.stream = self.network.connection_stream(transport)
        self.stream.on_drained(self._drained)
        self.made.set()

    def handshake_completed(self, certificate: bytes | None) -> None:
        self.secured.set()

    def _drained(self) -> None:
        assert self.stream.queued_bytes == 0
        self.drained_count += 1

    def resume_writing(self) -> None:
        self.stream.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.stream.closed()
        self.lost.set()


class Receiver(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.changed = asyncio.Event()
        self.is_lost = False

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.changed.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self.changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()


async def _joined(machine: Machine, environment: Environment, *, send_buffer_bytes: int = -1) -> Any:
    senders = []

    def make() -> Any:
        senders.append(Sender(environment.network))
        return senders[-1]

    listening = await environment.network.listen(
        make,
        host=machine.host,
        port=0,
        tls=machine.server_tls,
        buffers=SocketBuffers(send_bytes=send_buffer_bytes),
    )
    _, receiver = await environment.network.connect(
        Receiver, host=machine.host, port=listening.port, tls=machine.client_tls
    )
    while not senders:
        await asyncio.sleep(0.001)
    await senders[0].made.wait()
    if machine.server_tls is not None:
        await senders[0].secured.wait()
    listening.close()
    return senders[0], receiver


def _content_file(machine: Machine) -> Any:
    file = machine.files.open(f"{machine.directory}/content", OpenMode.WRITE)
    file.write([CONTENT], 0)
    return file


def _parts(file: File, releases: Releases, plan: Any) -> Any:
    """From (is a slice, position, size) to parts and the bytes they stand for."""
    parts, expected = [], []
    for is_slice, position, size in plan:
        expected.append(CONTENT[position : position + size])
        parts.append(releases.slice(file, position, size) if is_slice else expected[-1])
    return parts, b"".join(expected)


PLANS = {
    "bytes": [[(False, 0, 100)]],
    "several buffers": [[(False, 0, 100), (False, 5, 0), (False, 300, 7)]],
    "header and small slice": [[(False, 0, 50), (True, 1000, 5000)]],
    "header and large slice": [[(False, 0, 50), (True, 1000, 2 << 20), (False, 9, 9)]],
    "slice first": [[(True, 77, 1 << 20), (True, 0, 10), (True, 5, 200_000)]],
    "empty slice": [[(True, 10, 0), (False, 0, 1)]],
    "many small slices": [[(index % 2 == 1, index * 11, 300) for index in range(1500)]],
    "one reply after another": [[(False, index, 20), (True, index, 40_000 * index)] for index in range(1, 12)],
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_everything_arrives_in_order_and_every_slice_is_released_once(connecting_machine: Machine, plan: Any) -> None:
    file = _content_file(connecting_machine)
    releases = Releases()

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment)
        expected = b""
        for reply in plan:
            parts, content = _parts(file, releases, reply)
            expected += content
            sender.stream.send(parts)
        await receiver.until(lambda: len(receiver.received) >= len(expected))
        sender.stream.close_when_drained()
        await receiver.until(lambda: receiver.is_lost)
        await sender.lost.wait()
        return bytes(receiver.received) == expected, sender.stream.queued_bytes

    assert connecting_machine.run(scenario) == (True, 0)
    assert releases.counts == [1] * len(releases.counts)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plan=st.lists(
        st.lists(st.tuples(st.booleans(), st.integers(0, 1 << 20), st.integers(0, 1 << 18)), max_size=8), max_size=6
    )
)
def test_any_replies_arrive_whole(connecting_machine: Machine, plan: Any) -> None:
    file = _content_file(connecting_machine)
    releases = Releases()

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment, send_buffer_bytes=SMALL_BUFFER)
        expected = b""
        for reply in plan:
            parts, content = _parts(file, releases, reply)
            expected += content
            sender.stream.send(parts)
        sender.stream.close_when_drained()
        await receiver.until(lambda: receiver.is_lost)
        return bytes(receiver.received) == expected

    assert connecting_machine.run(scenario)
    assert releases.counts == [1] * len(releases.counts)


def test_a_reader_that_does_not_read_queues_and_draining_is_told_once(connecting_machine: Machine) -> None:
    file = _content_file(connecting_machine)
    releases = Releases()

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment, send_buffer_bytes=SMALL_BUFFER)
        receiver.transport.pause_reading()
        await asyncio.sleep(0.01)
        expected = b""
        while len(expected) < 40 << 20 and sender.stream.queued_bytes < 4 << 20:
            parts, content = _parts(file, releases, [(False, 0, 10), (True, 0, 3 << 20)])
            expected += content
            sender.stream.send(parts)
            await asyncio.sleep(0.005)
        queued, drained = sender.stream.queued_bytes, sender.drained_count
        assert not all(releases.counts)
        receiver.transport.resume_reading()
        await receiver.until(lambda: len(receiver.received) == len(expected))
        while sender.stream.queued_bytes:
            await asyncio.sleep(0.001)
        sender.transport.abort()
        return queued >= 4 << 20, sender.drained_count - drained, receiver.received == expected

    assert connecting_machine.run(scenario) == (True, 1, True)
    assert releases.counts == [1] * len(releases.counts)


def test_no_drained_call_when_everything_went_out_at_once(connecting_machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment)
        for _ in range(5):
            sender.stream.send([b"small"])
            await asyncio.sleep(0.005)
        await receiver.until(lambda: len(receiver.received) == 25)
        return sender.drained_count

    assert connecting_machine.run(scenario) == 0


def test_a_slice_that_shrank_aborts_the_connection(connecting_machine: Machine) -> None:
    for size in (1000, 2 << 20):
        file = _content_file(connecting_machine)
        file.truncate(500)
        releases = Releases()

        async def scenario(
            environment: Environment, size: int = size, file: File = file, releases: Releases = releases
        ) -> object:
            sender, receiver = await _joined(connecting_machine, environment)
            parts = [b"header", releases.slice(file, 0, size), b"trailer", releases.slice(file, 0, 10)]
            sender.stream.send(parts)
            await sender.lost.wait()
            await receiver.until(lambda: receiver.is_lost)
            return bytes(receiver.received)

        received = connecting_machine.run(scenario)
        assert b"trailer" not in received
        assert len(received) <= 506
        assert releases.counts == [1, 1]


def test_a_file_that_fails_aborts_the_connection(connecting_machine: Machine) -> None:
    for size in (1000, 2 << 20):
        file = _content_file(connecting_machine)
        releases = Releases()
        file.close()

        async def scenario(
            environment: Environment, size: int = size, file: File = file, releases: Releases = releases
        ) -> object:
            sender, _ = await _joined(connecting_machine, environment)
            sender.stream.send([releases.slice(file, 0, size), releases.slice(file, 0, 10)])
            await sender.lost.wait()
            return True

        assert connecting_machine.run(scenario)
        assert releases.counts == [1, 1]


def test_a_connection_lost_in_the_middle_releases_everything_once(connecting_machine: Machine) -> None:
    file = _content_file(connecting_machine)
    releases = Releases()

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment, send_buffer_bytes=SMALL_BUFFER)
        receiver.transport.pause_reading()
        for _ in range(8):
            sender.stream.send([b"header", releases.slice(file, 0, 2 << 20), releases.slice(file, 9, 9)])
        receiver.transport.abort()
        await sender.lost.wait()
        sender.stream.closed()
        # After the end everything is dropped, and slices are released all the same.
        sender.stream.send([b"late", releases.slice(file, 0, 10)])
        return sender.stream.queued_bytes

    queued = connecting_machine.run(scenario)
    assert queued == 0 or connecting_machine.kind == "simulated"
    assert releases.counts == [1] * len(releases.counts)


def test_closing_waits_for_what_was_handed_over_and_refuses_more(connecting_machine: Machine) -> None:
    file = _content_file(connecting_machine)
    releases = Releases()

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment, send_buffer_bytes=SMALL_BUFFER)
        sender.stream.send([b"header", releases.slice(file, 0, FILE_SIZE)])
        sender.stream.close_when_drained()
        sender.stream.send([b"too late", releases.slice(file, 0, 10)])
        await receiver.until(lambda: receiver.is_lost)
        return bytes(receiver.received)

    assert connecting_machine.run(scenario) == b"header" + CONTENT
    assert releases.counts == [1, 1]


def test_closing_an_idle_stream_closes_at_once(connecting_machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment)
        sender.stream.close_when_drained()
        await receiver.until(lambda: receiver.is_lost)
        await sender.lost.wait()
        return sender.drained_count

    assert connecting_machine.run(scenario) == 0


def test_the_drained_callback_may_send_again(connecting_machine: Machine) -> None:
    file = _content_file(connecting_machine)
    releases = Releases()

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment, send_buffer_bytes=SMALL_BUFFER)
        rounds = 0

        def refill() -> None:
            nonlocal rounds
            rounds += 1
            if rounds < 4:
                sender.stream.send([releases.slice(file, 0, FILE_SIZE)])

        sender.stream.on_drained(refill)
        sender.stream.send([releases.slice(file, 0, FILE_SIZE)])
        await receiver.until(lambda: len(receiver.received) >= 4 * FILE_SIZE)
        return bytes(receiver.received) == CONTENT * 4

    assert connecting_machine.run(scenario)
    assert releases.counts == [1, 1, 1, 1]


def test_what_has_arrived_is_received_at_once_or_left_to_the_transport(connecting_machine: Machine) -> None:
    """Every byte is given once, by the one or the other; receiving never waits and never fails."""

    async def scenario(environment: Environment) -> object:
        sender, receiver = await _joined(connecting_machine, environment)
        received = bytearray()
        buffer = bytearray(64)

        def arrived(data: bytes) -> None:
            count = sender.stream.receive(memoryview(buffer))
            received.extend(data + buffer[:count])

        sender.data_received = arrived
        for index in range(20):
            receiver.transport.write(bytes([index]) * 10)
            await asyncio.sleep(0.001)
        while len(received) < 200:
            await asyncio.sleep(0.001)
        receiver.transport.close()
        await sender.lost.wait()
        return bytes(received), sender.stream.receive(memoryview(buffer))

    assert connecting_machine.run(scenario) == (b"".join(bytes([index]) * 10 for index in range(20)), 0)
