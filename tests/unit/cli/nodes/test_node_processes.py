"""Processes are watched, named when they end, and started again; what can not run ends them all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import click
import pytest

from millbeck.cli import fleet
from millbeck.cli.fleet import Fleet, MemberOrder

SERVES = "import sys; print('{\"port\": 1}', flush=True); sys.stdin.read()"
ENDS = "import sys; sys.exit('millbeck: out of luck')"
SERVES_AND_ENDS = "import time; print('{\"port\": 1}', flush=True); time.sleep(0.05)"


def run(monkeypatch: pytest.MonkeyPatch, program: str, scenario: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
    monkeypatch.setattr(fleet, "_ENTRY", program)
    monkeypatch.setattr(fleet, "RESTART_PAUSE_SECONDS", 0.01)

    async def main() -> None:
        ships = Fleet([MemberOrder(node_id=number, settings={}) for number in (1, 2)], verbose=False)
        try:
            await scenario(ships)
        finally:
            await ships.stop()

    asyncio.run(main())


def test_one_that_is_killed_is_named_and_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario(ships: Fleet) -> None:
        await ships.start()
        assert [member.answer for member in ships.members] == [{"port": 1}, {"port": 1}]
        said = ""
        ships.members[1].kill()
        async with asyncio.timeout(30):
            while "node 2 is back" not in said:
                await asyncio.sleep(0.05)
                said += capsys.readouterr().err
        assert "node 2 was ended by signal 9; it is started again" in said

    run(monkeypatch, SERVES, scenario)


def test_one_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(ships: Fleet) -> None:
        with pytest.raises(click.ClickException, match=r"node \d did not start: out of luck"):
            await ships.start()

    run(monkeypatch, ENDS, scenario)


def test_one_that_keeps_ending_ends_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(ships: Fleet) -> None:
        await ships.start()
        async with asyncio.timeout(60):
            error = await ships.failed()
        assert "keeps ending; the last time it ended with exit code 0" in str(error)

    run(monkeypatch, SERVES_AND_ENDS, scenario)
