"""The real clock is the system's."""

from __future__ import annotations

import time
from pathlib import Path

from millbeck.host.environment import HostClock


def test_both_clocks_are_the_systems() -> None:
    clock = HostClock()
    before, now, after = time.monotonic(), clock.monotonic(), time.monotonic()
    assert before <= now <= after
    assert abs(clock.wall_ms() - time.time() * 1000) < 1000


def test_busy_is_who_runs_and_who_waits_for_a_processor(tmp_path: Path) -> None:
    scheduling = tmp_path / "schedstat"
    scheduling.write_text("5000000000 2500000000 17\n")
    before, busy, after = time.thread_time(), HostClock(str(scheduling)).busy_seconds(), time.thread_time()
    assert before + 2.5 <= busy <= after + 2.5


def test_without_the_schedulers_word_only_running_is_busy(tmp_path: Path) -> None:
    for text in ("", "1\n", "a b c\n"):
        (tmp_path / "schedstat").write_text(text)
        assert HostClock(str(tmp_path / "schedstat")).busy_seconds() <= time.thread_time()
    assert HostClock(str(tmp_path / "none")).busy_seconds() <= time.thread_time()
    assert HostClock().busy_seconds() > 0
