"""Events reach every sink in order; a sink that is slow or broken delays nobody, and its losses are counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from millbeck.host import real_environment
from millbeck.security.audit.events import AuditKind, event_of
from millbeck.server.audit.audit_file import AuditFile, append
from millbeck.server.audit.audit_log import BYTES_AT_ONCE, LINES_AT_ONCE, AuditLog, SinkQueue
from millbeck.server.loop.deadlines import Deadlines


class Sink:
    name = "sink"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.batches: list[int] = []
        self.never: set[str] = set()
        """What this sink leaves out."""
        self.is_broken = False

    async def write(self, lines: Sequence[str]) -> int:
        await asyncio.sleep(0)
        if self.is_broken:
            raise OSError("no space")
        self.batches.append(len(lines))
        self.lines += [line for line in lines if line not in self.never]
        return sum(line in self.never for line in lines)


def make(*sinks: Any, kinds: Sequence[AuditKind] = tuple(AuditKind), repeat_ms: int = 50) -> AuditLog:
    loop = asyncio.get_running_loop()

    def report(error: Exception) -> None:
        raise error

    audit = AuditLog(
        sinks,
        clock=real_environment().clock,
        deadlines=Deadlines(loop, report),
        node_id=7,
        kinds=kinds,
        repeat_ms=repeat_ms,
    )
    audit.start(lambda work: loop.create_task(work))
    return audit


def test_events_are_written_in_order_and_repeats_folded() -> None:
    async def main() -> None:
        sink = Sink()
        audit = make(sink)
        for _ in range(5):
            audit.record(event_of(AuditKind.DENIED, principal="User:a"))
        audit.record(event_of(AuditKind.LOGIN, principal="User:b"))
        await asyncio.sleep(0.2)
        found = [json.loads(line) for line in sink.lines]
        assert [(each["event"], each.get("repeated")) for each in found] == [
            ("denied", None),
            ("login", None),
            ("denied", 4),
        ]
        assert {each["node"] for each in found} == {7}
        assert audit.counts[AuditKind.DENIED] == 5
        await audit.close()

    asyncio.run(main())


def test_repeats_of_every_window_are_written() -> None:
    async def main() -> None:
        sink = Sink()
        audit = make(sink)
        for name in "abc":
            for _ in range(3):
                audit.record(event_of(AuditKind.DENIED, principal=f"User:{name}"))
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        found = [json.loads(line) for line in sink.lines]
        assert [each["principal"] for each in found if each.get("repeated") == 2] == ["User:a", "User:b", "User:c"]
        await audit.close()

    asyncio.run(main())


def test_only_the_events_asked_for() -> None:
    async def main() -> None:
        sink = Sink()
        audit = make(sink, kinds=[AuditKind.CHANGED])
        audit.record(event_of(AuditKind.LOGIN, principal="User:b"))
        audit.record(event_of(AuditKind.CHANGED, principal="User:b"))
        await audit.close()
        assert len(sink.lines) == 1

    asyncio.run(main())


def test_a_broken_sink_is_tried_again_and_the_other_does_not_wait(monkeypatch: Any) -> None:
    monkeypatch.setattr("millbeck.server.audit.audit_log.RETRY_SECONDS", 0.01)

    async def main() -> None:
        good, bad = Sink(), Sink()
        bad.is_broken = True
        audit = make(good, bad)
        audit.record(event_of(AuditKind.LOGIN, principal="User:a"))
        await asyncio.sleep(0.05)
        assert (len(good.lines), len(bad.lines)) == (1, 0)
        bad.is_broken = False
        await asyncio.sleep(0.05)
        assert bad.lines == good.lines
        await audit.close()

    asyncio.run(main())


def test_the_queue_is_bounded_and_counts_what_it_drops() -> None:
    async def main() -> None:
        sink = Sink()
        queue = SinkQueue(sink, queued_max=3)
        for number in range(10):
            queue.put(str(number))
        assert queue.dropped == 7
        await queue.close()
        assert sink.lines == ["0", "1", "2"]
        assert queue.written == 3

    asyncio.run(main())


def test_the_queue_is_bounded_by_its_bytes_and_has_room_again_once_they_are_written() -> None:
    async def main() -> None:
        sink = Sink()
        queue = SinkQueue(sink, queued_bytes_max=100)
        for _ in range(3):
            for number in range(10):
                queue.put(str(number) * 30)
            assert await queue.write_some()
        assert sink.lines == [str(number) * 30 for number in range(3)] * 3
        assert (queue.written, queue.dropped) == (9, 21)

    asyncio.run(main())


def test_a_batch_is_bounded_by_lines_and_by_bytes() -> None:
    async def main() -> None:
        sink = Sink()
        queue = SinkQueue(sink)
        for _ in range(LINES_AT_ONCE + 1):
            queue.put("short")
        for _ in range(5):
            queue.put("x" * (BYTES_AT_ONCE // 2))
        queue.put("x" * (BYTES_AT_ONCE + 1))
        await queue.close()
        assert sink.batches == [LINES_AT_ONCE, 2, 2, 2, 1]
        assert queue.written == LINES_AT_ONCE + 7

    asyncio.run(main())


def test_lines_that_a_sink_leaves_out_are_counted_as_dropped_and_hold_up_no_others() -> None:
    async def main() -> None:
        sink = Sink()
        sink.never = {"b"}
        queue = SinkQueue(sink)
        for line in "abc":
            queue.put(line)
        await queue.close()
        assert sink.lines == ["a", "c"]
        assert (queue.written, queue.dropped) == (2, 1)

    asyncio.run(main())


def test_closing_writes_what_is_left_and_does_not_wait_for_a_broken_sink() -> None:
    async def main() -> None:
        good, bad = Sink(), Sink()
        bad.is_broken = True
        audit = make(good, bad, repeat_ms=60_000)
        for _ in range(3):
            audit.record(event_of(AuditKind.DENIED, principal="User:a"))
        await audit.close()
        assert [json.loads(line).get("repeated") for line in good.lines] == [None, 2]

    asyncio.run(main())


def test_closing_waits_for_a_write_that_is_under_way_and_writes_each_line_once() -> None:
    class Slow(Sink):
        async def write(self, lines: Sequence[str]) -> int:
            self.lines += lines  # as on a thread, which cannot be cancelled
            await asyncio.sleep(0.05)
            return 0

    async def main() -> None:
        sink = Slow()
        audit = make(sink)
        audit.record(event_of(AuditKind.LOGIN, principal="User:a"))
        await asyncio.sleep(0.01)
        audit.record(event_of(AuditKind.LOGIN, principal="User:b"))
        await audit.close()
        assert [json.loads(line)["principal"] for line in sink.lines] == ["User:a", "User:b"]
        assert audit.queues[0].written == 2

    asyncio.run(main())


def test_closing_does_not_wait_for_a_sink_that_hangs(monkeypatch: Any) -> None:
    monkeypatch.setattr("millbeck.server.audit.audit_log.CLOSE_SECONDS_MAX", 0.05)

    class Hanging(Sink):
        async def write(self, lines: Sequence[str]) -> int:
            await asyncio.get_running_loop().create_future()
            raise AssertionError

    async def main() -> None:
        good = Sink()
        audit = make(good, Hanging())
        audit.record(event_of(AuditKind.LOGIN, principal="User:a"))
        await asyncio.sleep(0.01)
        assert len(good.lines) == 1, "it waits for the other one"
        await asyncio.wait_for(audit.close(), 5)

    asyncio.run(main())


def test_files_are_rotated_and_private(tmp_path: Path) -> None:
    path = str(tmp_path / "audit.log")
    files = real_environment().files
    for number in range(10):
        append(files, path, b"%d" % number * 60 + b"\n", 130, 3)
    assert (tmp_path / "audit.log").read_text() == f"{'8' * 60}\n{'9' * 60}\n"
    assert (tmp_path / "audit.log.1").read_text() == f"{'6' * 60}\n{'7' * 60}\n"
    assert (tmp_path / "audit.log.2").read_text() == f"{'4' * 60}\n{'5' * 60}\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_an_incomplete_line_of_an_earlier_process_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text('whole\n{"time":')
    for line in (b"a\n", b"b\n"):
        append(real_environment().files, str(path), line, 1000, 2)
    assert path.read_text() == 'whole\n{"time":\na\nb\n'


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "audit.log"
        sink = AuditFile(real_environment(), str(path), size_bytes_max=1000, file_count=2)
        await sink.write(["a", "b"])
        path.rename(tmp_path / "moved")
        await sink.write(["c"])
        assert path.read_text() == "c\n"

    asyncio.run(main())
