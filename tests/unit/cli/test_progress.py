from __future__ import annotations

import asyncio
import sys
import time

import pytest

from millbeck.cli import progress as module
from millbeck.cli.progress import progress, progress_of_loop, progress_text


def show(seconds: float) -> None:
    async def work() -> None:
        async with progress(lambda passed: f"busy {passed >= 0}"):
            await asyncio.sleep(seconds)

    asyncio.run(work())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
def test_a_terminal_sees_a_line_that_is_cleared_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show(0.1)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\r\x1b[Kbusy True") >= 2
    assert printed.err.endswith("\r\x1b[K")
    assert "\n" not in printed.err


@pytest.mark.usefixtures("quick")
def test_what_is_quick_shows_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show(0)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("quick")
def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show(0.05)
    assert capsys.readouterr().err == ""


def loop(seconds: float) -> None:
    began_s = time.monotonic()
    with progress_of_loop() as show:
        while time.monotonic() < began_s + seconds:
            show(lambda: "busy")


@pytest.mark.usefixtures("quick")
def test_a_loop_shows_it_while_its_results_go_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    loop(0.01)
    assert capsys.readouterr().err == ""
    loop(0.1)
    printed = capsys.readouterr().err
    assert 2 <= printed.count("\r\x1b[Kbusy") <= 10
    assert printed.endswith("\r\x1b[K")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    loop(0.05)
    assert capsys.readouterr().err == ""


def test_how_far() -> None:
    assert progress_text(1200, 5000, 2.0, "records") == "1200 of 5000 records, 600/s"
    assert progress_text(7, None, 0.0, "records") == "7 records, 0/s"
