"""The real environment as a whole; what its parts promise is in the contract suite."""

from __future__ import annotations

from pathlib import Path

from millbeck import host
from millbeck.host.environment import real_environment
from millbeck.host.linux import IS_LINUX
from millbeck.kernel.environment import OpenMode


def test_every_part_is_there_and_threads_are_counted() -> None:
    environment = real_environment(thread_count=3)
    assert environment.clock.wall_ms() > 1_600_000_000_000
    assert environment.randomness.below(1) == 0
    assert environment.files.exists("/")
    assert host.real_environment is real_environment


def test_portable_mode_does_without_linux(tmp_path: Path) -> None:
    files = {
        portable: real_environment(portable=portable).files.open(f"{tmp_path}/{portable}", OpenMode.WRITE)
        for portable in (False, True)
    }
    assert files[False].reads_nowait == IS_LINUX
    assert not files[True].reads_nowait
