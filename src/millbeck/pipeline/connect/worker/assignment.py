"""Which worker has which connectors: the leader's decision at each rebalance. Pure.

A connector stays with the worker that has it. A new one goes to the worker with the fewest. The connectors of a worker
that is gone wait for it to come back, for at most ``scheduled.rebalance.max.delay.ms``; then they go to the others. A
worker that has said good-bye (its connectors are UNASSIGNED) is not waited for. Nothing else ever moves.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

PROTOCOL_TYPE: Final = "connect"
PROTOCOL: Final = "millbeck"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMetadata:
    """What a worker tells the group when it joins."""

    worker_id: str
    url: str
    owned: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return _encoded({"worker": self.worker_id, "url": self.url, "owned": list(self.owned)})

    @classmethod
    def decode(cls, data: bytes) -> WorkerMetadata:
        """Raises `ValueError`."""
        found = _decoded(data)
        return cls(worker_id=str(found["worker"]), url=str(found["url"]), owned=_names(found["owned"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What the leader tells a worker."""

    leader_url: str
    is_leader: bool
    connectors: tuple[str, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    """The addresses of the workers that have the others' connectors."""

    def encode(self) -> bytes:
        return _encoded(
            {
                "leader": self.leader_url,
                "is_leader": self.is_leader,
                "connectors": list(self.connectors),
                "owners": dict(self.owners),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Part:
        """Raises `ValueError`."""
        found = _decoded(data)
        owners = found["owners"]
        if not isinstance(owners, dict):
            raise ValueError("owners is not an object")
        return cls(
            leader_url=str(found["leader"]),
            is_leader=found["is_leader"] is True,
            connectors=_names(found["connectors"]),
            owners={str(name): str(url) for name, url in owners.items()},
        )


@dataclass(slots=True)
class Assignor:
    """What the leader remembers between rebalances."""

    delay_s: float
    waiting: dict[str, float] = field(default_factory=dict)
    """Until when connectors of workers that are gone wait."""

    def assign(
        self,
        members: Mapping[str, WorkerMetadata],
        connectors: Collection[str],
        last_workers: Mapping[str, str],
        now_s: float,
    ) -> dict[str, tuple[str, ...]]:
        """The connectors of each member. ``last_workers`` are the workers that had a connector and have not given it
        back."""
        parts: dict[str, list[str]] = {member: [] for member in sorted(members)}
        taken: set[str] = set()
        for member in parts:
            for name in members[member].owned:
                if name in connectors and name not in taken:
                    taken.add(name)
                    parts[member].append(name)
        by_worker = {members[member].worker_id: member for member in parts}
        self.waiting = {name: until for name, until in self.waiting.items() if name in connectors and name not in taken}
        for name in sorted(connectors):
            if name in taken:
                continue
            before = last_workers.get(name)
            back = None if before is None else by_worker.get(before)
            if back is not None:
                self.waiting.pop(name, None)
                parts[back].append(name)
            elif before is not None and now_s < self.waiting.setdefault(name, now_s + self.delay_s):
                continue
            else:
                self.waiting.pop(name, None)
                parts[_least(parts)].append(name)
        return {member: tuple(sorted(names)) for member, names in parts.items()}

    def next_s(self) -> float | None:
        """When connectors that wait are to be assigned anew."""
        return min(self.waiting.values(), default=None)


def _least(parts: Mapping[str, list[str]]) -> str:
    return min(parts, key=lambda member: (len(parts[member]), member))


def _encoded(members: Mapping[str, object]) -> bytes:
    return json.dumps({"version": _VERSION, **members}, separators=(",", ":")).encode()


def _decoded(data: bytes) -> dict[str, object]:
    found = json.loads(data)
    if not isinstance(found, dict) or found.get("version") != _VERSION:
        raise ValueError("not of this version")
    return found


def _names(found: object) -> tuple[str, ...]:
    if not isinstance(found, Iterable):
        raise ValueError("not a list of names")
    return tuple(str(name) for name in found)
