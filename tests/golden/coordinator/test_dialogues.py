"""Rebalances written down as dialogues: each file is a list of commands, and what the coordinator did after each.

A trace shows the answers that came, the records that were written and the state the group is in. To write the traces
anew run ``MILLBECK_REWRITE_GOLDEN=1 pytest tests/golden/coordinator`` and read the difference like code: commit it only
if you understand what caused it.

    join NAME [instance=I] [version=V] [protocols=p,q] [session=MS] [rebalance=MS] [id=none]
    sync NAME [MEMBER=WORK ...]        heartbeat NAME          leave NAME ...
    commit NAME TOPIC-PARTITION=OFFSET ...                     fetch
    advance MS        hold        release        refuse        accept        restart
"""

from __future__ import annotations

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from millbeck.coordinator.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    decode,
)
from millbeck.kernel import errors
from millbeck.kernel.errors import by_code
from millbeck.records import batch

_SPEC = spec_from_file_location(
    "coordinator_world_for_golden", Path(__file__).parents[2] / "unit" / "coordinator" / "world.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
worlds: Any = module_from_spec(_SPEC)
_SPEC.loader.exec_module(worlds)

FILES = sorted(Path(__file__).parent.glob("*.txt"))


class Dialogue:
    """Clients by name, a world, and the trace of what happens to them."""

    def __init__(self) -> None:
        self.world = worlds.World()
        self.started_ms = self.world.now_ms
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.instances: dict[str, str | None] = {}
        self.waiting: list[tuple[str, str, Any]] = []
        self.log_position = 0

    def run(self, line: str) -> str:
        command, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        getattr(self, f"do_{command}")(names, options)
        return "\n".join([*self._answers(), *self._records(), self._state()])

    # Commands

    def do_join(self, names: list[str], options: dict[str, str]) -> None:
        name = names[0]
        self.instances[name] = options.get("instance", self.instances.get(name))
        outcome = self.world.join(
            "" if options.get("id") == "none" else self.ids.get(name, ""),
            instance=self.instances[name],
            version=int(options.get("version", "9")),
            protocols=dict.fromkeys(options.get("protocols", "range").split(","), worlds.subscription("t")),
            session_ms=int(options.get("session", "10000")),
            rebalance_ms=int(options.get("rebalance", "60000")),
            client=name,
        )
        self.waiting.append((name, "join", outcome))

    def do_sync(self, names: list[str], options: dict[str, str]) -> None:
        name = names[0]
        assignments = {self.ids.get(member, member): work.encode() for member, work in options.items()}
        outcome = self.world.sync(self.ids[name], self.generations[name], assignments, instance=self.instances[name])
        self.waiting.append((name, "sync", outcome))

    def do_heartbeat(self, names: list[str], _: dict[str, str]) -> None:
        for name in names:
            outcome = self.world.heartbeat(self.ids[name], self.generations[name], instance=self.instances[name])
            self.waiting.append((name, "heartbeat", outcome))

    def do_leave(self, names: list[str], _: dict[str, str]) -> None:
        outcome = self.world.leave(*((self.ids[name], self.instances[name]) for name in names))
        self.waiting.append((",".join(names), "leave", outcome))

    def do_commit(self, names: list[str], options: dict[str, str]) -> None:
        name = names[0]
        offsets = {self._place(place): int(offset) for place, offset in options.items()}
        outcome = self.world.commit(
            offsets, member_id=self.ids[name], generation=self.generations[name], instance=self.instances[name]
        )
        self.waiting.append((name, "commit", outcome))

    def _place(self, text: str) -> tuple[str, int]:
        topic, _, partition = text.rpartition("-")
        return topic, int(partition)

    def do_fetch(self, _: list[str], __: dict[str, str]) -> None:
        self.waiting.append(("anybody", "fetch", self.world.fetch(None)))

    def do_advance(self, words: list[str], _: dict[str, str]) -> None:
        self.world.advance(int(words[0]))

    def do_hold(self, _: list[str], __: dict[str, str]) -> None:
        self.world.log.holds_commits = True

    def do_release(self, _: list[str], __: dict[str, str]) -> None:
        self.world.log.holds_commits = False
        self.world.commit_log()

    def do_refuse(self, _: list[str], __: dict[str, str]) -> None:
        self.world.log.refusal = errors.NotEnoughReplicas()

    def do_accept(self, _: list[str], __: dict[str, str]) -> None:
        self.world.log.refusal = None

    def do_restart(self, _: list[str], __: dict[str, str]) -> None:
        self.world = self.world.reload()

    # Traces

    def _short(self, member_id: str | None) -> str:
        if not member_id:
            return "nobody"
        return next((name for name, known in self.ids.items() if known == member_id), member_id)

    def _answers(self) -> list[str]:
        done = [entry for entry in self.waiting if entry[2].is_done]
        self.waiting = [entry for entry in self.waiting if not entry[2].is_done]
        for name, kind, outcome in done:
            if kind == "join" and outcome.response is not None and outcome.code_name in ("NONE", "MEMBER_ID_REQUIRED"):
                self.ids[name] = outcome.response.member_id
                if outcome.code_name == "NONE":
                    self.generations[name] = outcome.response.generation_id
        return [f"{name} <- {kind} {self._answer(kind, outcome)}" for name, kind, outcome in done]

    def _answer(self, kind: str, outcome: Any) -> str:
        response = outcome.response
        if kind == "commit" and response is not None:
            return " ".join(
                f"{one.name}-{each.partition_index}:{each.error_code}"
                for one in response.topics
                for each in one.partitions
            )
        if kind == "fetch":
            return " ".join(
                f"{one.name}-{each.partition_index}={each.committed_offset}"
                for one in response.topics
                for each in one.partitions
            )
        text = outcome.code_name
        if kind == "leave" and response is not None:
            codes = (one.error_code for one in response.members)
            return " ".join("NONE" if code == 0 else by_code[code].kafka_name for code in codes)
        if text != "NONE":
            return str(text)
        if kind == "join":
            members = " ".join(self._short(member.member_id) for member in response.members)
            skips = " skip-assignment" if response.skip_assignment else ""
            terms = f"leader={self._short(response.leader)} protocol={response.protocol_name}"
            return f"NONE generation={response.generation_id} {terms} [{members}]{skips}"
        if kind == "sync":
            return f"NONE {response.assignment.decode() or 'nothing'}"
        return "NONE"

    def _records(self) -> list[str]:
        lines = []
        for data in self.world.log.batches[self.log_position :]:
            for record in batch.records_of(data):
                found = decode(record.key or b"", record.value)
                assert found is not None
                lines.append(f"log {record.offset}: {self._record(found)}")
        self.log_position = len(self.world.log.batches)
        return lines

    def _record(self, found: GroupRecord) -> str:
        if isinstance(found.key, GroupMetadataKey):
            if found.value is None:
                return f"group {found.key.group} removed"
            assert isinstance(found.value, GroupMetadataValue)
            value = found.value
            members = " ".join(f"{self._short(one.member_id)}={one.assignment.decode()}" for one in value.members)
            leader = self._short(value.leader)
            return f"group {found.key.group} generation={value.generation} leader={leader} [{members}]"
        assert isinstance(found.key, OffsetCommitKey)
        assert isinstance(found.value, OffsetCommitValue | None)
        offset = "removed" if found.value is None else found.value.offset
        return f"offset {found.key.group} {found.key.topic}-{found.key.partition} {offset}"

    def _state(self) -> str:
        group = self.world.group()
        at = f"{self.world.now_ms - self.started_ms} ms"
        if group is None:
            return f"{at}: no group"
        members = " ".join(self._short(member) for member in group.members)
        pending = (
            f" pending {' '.join(self._short(member) for member in group.pending_joins)}" if group.pending_joins else ""
        )
        return f"{at}: {group.state.value} generation={group.generation_id} [{members}]{pending}"


def trace(text: str) -> str:
    """The file's text with the traces that its commands give now; comments and blank lines stay."""
    dialogue = Dialogue()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, dialogue.run(line[2:]), ""]
        elif line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_dialogue_goes_as_written(path: Path) -> None:
    expected = path.read_text()
    actual = trace(expected)
    if os.environ.get("MILLBECK_REWRITE_GOLDEN"):
        path.write_text(actual)
    assert actual == path.read_text()
    assert actual.count("\n> ") >= 3, "a dialogue has commands"
