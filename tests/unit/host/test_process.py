"""The process's own numbers, as far as the system tells them."""

from __future__ import annotations

import builtins
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from millbeck.host.process import process_numbers


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_open_files_memory_and_disk_bytes_are_counted(tmp_path: Path) -> None:
    before = process_numbers()
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, b"x" * 100_000)
    os.fsync(descriptor)
    after = process_numbers()
    os.close(descriptor)
    assert after["process_open_fds"] == before["process_open_fds"] + 1
    assert after["process_open_fds"] < after["process_max_fds"]
    assert after["process_resident_memory_bytes"] > 1 << 20
    assert after["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"]
    assert after["disk_write_bytes"] >= before["disk_write_bytes"]
    assert after["disk_read_bytes"] >= before["disk_read_bytes"]


def test_what_the_system_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    assert set(process_numbers()) == {"process_max_fds", "process_cpu_seconds_total"}
