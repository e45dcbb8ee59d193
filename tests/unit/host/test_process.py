"""The process's own numbers, as far as the system tells them."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from millbeck.host import process
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


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_an_older_kernel_is_asked_for_the_list_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        st_size = 0

    known = process_numbers()["process_open_fds"]
    monkeypatch.setattr(os, "stat", lambda path: Empty())
    assert process_numbers()["process_open_fds"] == known


def test_what_the_system_does_not_tell_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "_PROC", str(tmp_path / "missing"))
    assert set(process_numbers()) == {"process_max_fds", "process_cpu_seconds_total"}


def test_the_limit_of_open_files_is_raised_to_its_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, wanted: limits.append(wanted))
    process.raise_open_files_limit()
    process.raise_open_files_limit()
    assert limits == [(1024, 4096), (4096, 4096)]

    def refuse(which: int, wanted: object) -> None:
        raise ValueError("not allowed")

    limits.append((1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    process.raise_open_files_limit()
