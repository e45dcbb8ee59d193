"""Processes are watched, named when they end, and started again; what can not run ends them all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import click
import pytest

from millbeck.cli.nodes import node_processes
from millbeck.cli.nodes.node_processes import NodeCommand, NodeProcesses

SERVES = "import sys; print('{\"port\": 1}', flush=True); sys.stdin.read()"
ENDS = "import sys; sys.exit('millbeck: out of luck')"
SERVES_AND_ENDS = "import time; print('{\"port\": 1}', flush=True); time.sleep(0.05)"


def run(
    monkeypatch: pytest.MonkeyPatch, program: str, scenario: Callable[[NodeProcesses], Coroutine[Any, Any, None]]
) -> None:
    monkeypatch.setattr(node_processes, "_ENTRY", program)
    monkeypatch.setattr(node_processes, "RESTART_PAUSE_SECONDS", 0.01)

    async def main() -> None:
        ships = NodeProcesses([NodeCommand(node_id=number, settings={}) for number in (1, 2)], verbose=False)
        try:
            await scenario(ships)
        finally:
            await ships.stop()

    asyncio.run(main())


def test_the_log_of_each_is_passed_on_a_line_without_end_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = SERVES.replace("sys.stdin", "sys.stderr.write('x' * 300_000 + '\\nERROR damaged\\n'); sys.stdin")

    async def scenario(ships: NodeProcesses) -> None:
        await ships.start()
        said = ""
        async with asyncio.timeout(30):
            while not ("node 1: ERROR damaged" in said and "node 2: ERROR damaged" in said):
                await asyncio.sleep(0.05)
                said += capsys.readouterr().err
        assert "a line that is too long was left out" in said

    run(monkeypatch, program, scenario)


def test_output_is_read_though_nobody_reads_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    program = SERVES.replace("sys.stdin", "sys.stderr.write('x\\n' * 100_000 + 'the last line\\n'); sys.stdin")

    def lost(*_: object, **__: object) -> None:
        raise BrokenPipeError

    async def scenario(ships: NodeProcesses) -> None:
        await ships.start()
        async with asyncio.timeout(30):
            while any(member.last_error_line() != "the last line" for member in ships.members):
                await asyncio.sleep(0.05)
        assert [member.state for member in ships.members] == ["running", "running"]

    monkeypatch.setattr(click, "echo", lost)
    run(monkeypatch, program, scenario)


def test_one_that_is_killed_is_named_and_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(ships: NodeProcesses) -> None:
        await ships.start()
        assert [member.answer for member in ships.members] == [{"port": 1}, {"port": 1}]
        said = ""
        ships.members[1].kill()
        async with asyncio.timeout(30):
            while "node 2 is back" not in said:
                await asyncio.sleep(0.05)
                said += capsys.readouterr().err
        assert "node 2 was killed by signal 9; restarting it" in said

    run(monkeypatch, SERVES, scenario)


def test_one_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(ships: NodeProcesses) -> None:
        with pytest.raises(click.ClickException, match=r"node \d did not start: out of luck"):
            await ships.start()
        # The reason is told once, by the exception.
        assert "out of luck" not in capsys.readouterr().err

    run(monkeypatch, ENDS, scenario)


def test_one_that_keeps_ending_ends_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(ships: NodeProcesses) -> None:
        await ships.start()
        async with asyncio.timeout(60):
            error = await ships.failed()
        assert "keeps exiting; the last time it exited with code 0" in str(error)

    run(monkeypatch, SERVES_AND_ENDS, scenario)


def test_one_that_is_stopped_on_request_stays_down_until_it_is_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(node_processes, "RESTART_PAUSE_SECONDS", 0.01)

    async def scenario(ships: NodeProcesses) -> None:
        await ships.start()
        first = ships.members[1].process_id
        for is_crash in (False, True):
            member = ships.hold(2, is_crash=is_crash)
            await member.wait()
            await asyncio.sleep(0.1)
            assert (member.state, member.process_id) == ("stopped", None)
            assert await ships.release(2) is member
            assert member.state == "running"
            assert member.process_id not in (None, first)
        assert [each.restart_count for each in ships.members] == [0, 0]
        assert "restarting" not in capsys.readouterr().err
        with pytest.raises(click.ClickException, match="there is no node 7: it is one of 1, 2"):
            ships.hold(7, is_crash=False)

    run(monkeypatch, SERVES, scenario)


def test_one_that_cannot_start_again_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_processes, "START_SECONDS_MAX", 5.0)

    async def scenario(ships: NodeProcesses) -> None:
        await ships.start()
        await ships.hold(2, is_crash=True).wait()
        monkeypatch.setattr(node_processes, "_ENTRY", ENDS)
        monkeypatch.setattr(node_processes, "START_SECONDS_MAX", 0.5)
        with pytest.raises(click.ClickException, match=r"node 2 does not serve yet after 0\.5 s: out of luck"):
            await ships.release(2)

    run(monkeypatch, SERVES, scenario)
