"""Memory that is freed and wanted again costs no page faults, in a process that asked for it."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from millbeck.host import linux, memory
from millbeck.host.linux import IS_LINUX

SCRIPT = """
import resource, sys
from millbeck.host.memory import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    print("impossible")
    sys.exit()

def churn():
    buffers = [bytearray(1 << 20) for _ in range(3)]
    return bytes(buffers[0])

churn()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    churn()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


PINNED = """
import sys
from millbeck.host.memory import give_back_freed_memory, keep_freed_memory
from millbeck.host.process import process_numbers
keep_freed_memory()
pairs = [(bytearray(b"x") * (1 << 20), bytearray(b"x") * 10_000) for _ in range(100)]
pinned = [small for _, small in pairs]
del pairs
if sys.argv[1] == "given back":
    give_back_freed_memory()
print(int(process_numbers()["process_resident_memory_bytes"]))
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, check=True)
    if done.stdout.strip() == "impossible":
        pytest.skip("this C library has no mallopt")
    return int(done.stdout)


@pytest.mark.skipif(not IS_LINUX, reason="only Linux")
def test_freed_memory_is_kept_and_costs_no_faults() -> None:
    assert faults("kept") < 100 < faults("returned")


def test_elsewhere_nothing_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "IS_LINUX", False)
    assert not memory.keep_freed_memory()


def test_a_library_without_the_call_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not memory.keep_freed_memory()


def resident_bytes(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PINNED, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not IS_LINUX, reason="only Linux")
def test_freed_memory_before_a_block_in_use_is_given_back() -> None:
    kept = resident_bytes("kept")
    if linux._malloc_trim is None:
        assert resident_bytes("given back") > kept // 2
    else:
        assert resident_bytes("given back") < kept - (90 << 20)


def test_where_the_library_cannot_trim_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(linux, "_malloc_trim", lambda pad: calls.append(pad.value))
    memory.give_back_freed_memory()
    monkeypatch.setattr(linux, "_malloc_trim", None)
    memory.give_back_freed_memory()
    assert calls == [0]
