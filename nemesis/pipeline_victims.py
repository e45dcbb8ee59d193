"""The processes of a pipeline that runs: its driver, in Python and in Java, and Spark's Python workers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

DRIVER = "driver"
JAVA = "java"
WORKER = "worker"


class Process(NamedTuple):
    process_id: int
    parent_id: int
    started: int
    """With the id it names a process for good; ids are given again."""
    command: str


def processes() -> dict[int, Process]:
    """All that run now; those that ended and were not asked after are left out."""
    found: dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = _process(int(name))
            if process is not None:
                found[process.process_id] = process
    return found


def _process(process_id: int) -> Process | None:
    try:
        with open(f"/proc/{process_id}/stat", encoding="utf-8", errors="replace") as file:
            # The name before the bracket may hold anything.
            fields = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{process_id}/cmdline", encoding="utf-8", errors="replace") as file:
            command = file.read().replace("\0", " ")
    except OSError:
        return None
    return None if fields[0] == "Z" else Process(process_id, int(fields[1]), int(fields[19]), command)


def victims(keeper: int, running: Mapping[int, Process]) -> dict[str, list[Process]]:
    """By kind. The keeper, which the user called, is none of them."""
    children: dict[int, list[Process]] = {}
    for process in running.values():
        children.setdefault(process.parent_id, []).append(process)
    found: dict[str, list[Process]] = {DRIVER: [], JAVA: [], WORKER: []}
    for driver in children.get(keeper, []):
        found[DRIVER].append(driver)
        for java in children.get(driver.process_id, []):
            if "org.apache.spark" in java.command:
                found[JAVA].append(java)
                found[WORKER] += _below(java.process_id, children)
    return found


def _below(process_id: int, children: Mapping[int, list[Process]]) -> list[Process]:
    found: list[Process] = []
    for child in children.get(process_id, []):
        found += [child, *_below(child.process_id, children)]
    return found


def is_running(process: Process) -> bool:
    now = _process(process.process_id)
    return now is not None and now.started == process.started
