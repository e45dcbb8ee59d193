"""From the clients' notes to a verdict: the same checkers as in the simulator, and figures that must not be empty."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millbeck.simulation.checkers import check_all
from millbeck.simulation.histories.history import Anomaly, History, Send


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionVerdict:
    committed: int
    aborted: int
    """Transactions that ended so, as those who made them saw it."""
    records: int
    """Of what they wrote, as readers of what is committed see it."""
    checksum: str
    """Of these, in order."""
    anomalies: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    anomalies: list[Anomaly]
    sent: int
    acknowledged: int
    undelivered: int
    read: int
    client_errors: list[str]
    windows_s: list[float]
    """From each kill to the first acknowledgement of a record sent after it, for each partition whose leader it was."""
    standstills: list[str]
    """Partitions that took nothing while they had to."""
    transactions: TransactionVerdict | None = None

    @property
    def window_p99_s(self) -> float:
        ordered = sorted(self.windows_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] if ordered else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What a run has to show. The least counts are for its full length: a shorter run has its share of them."""

    acknowledged_min: int = 1000
    leader_changes_min: int = 0
    windows_min: int = 0
    window_max_s: float | None = None
    """What p99 of the times without a leader may be."""
    committed_min: int = 0
    aborted_min: int = 0
    """Transactions that ended so."""
    tolerates_client_errors: bool = True
    """Errors other than fatal ones."""

    def problems(self, verdict: Verdict, leader_changes: int, *, share: float) -> list[str]:
        share = min(share, 1.0)
        problems = [str(anomaly) for anomaly in verdict.anomalies] + verdict.standstills
        transactions = verdict.transactions
        problems += [] if transactions is None else transactions.anomalies
        for what, count, least in (
            ("transactions were committed", 0 if transactions is None else transactions.committed, self.committed_min),
            ("transactions were aborted", 0 if transactions is None else transactions.aborted, self.aborted_min),
            ("records were acknowledged", verdict.acknowledged, self.acknowledged_min),
            ("changes of leaders were seen", leader_changes, self.leader_changes_min),
            ("partitions lost their leader", len(verdict.windows_s), self.windows_min),
        ):
            if count < int(least * share):
                problems.append(f"empty: only {count} {what}, not {int(least * share)}")
        if self.window_max_s is not None and verdict.window_p99_s > self.window_max_s:
            problems.append(f"p99 of the windows is {verdict.window_p99_s:.2f} s, above {self.window_max_s:.2f} s")
        fatal = [error for error in verdict.client_errors if "fatal" in error]
        return problems + (fatal if self.tolerates_client_errors else verdict.client_errors)


def entries(path: Path) -> Iterator[list[Any]]:
    with path.open() as lines:
        for line in lines:
            # A process that was killed may have left half a line.
            if line.endswith("\n"):
                yield json.loads(line)


def judge(
    producers: list[Path],
    consumers: list[Path],
    final: Path,
    *,
    kills: list[tuple[int, float]],
    flows: list[tuple[str, float, float]],
    acknowledged_count_min: int,
    members: Sequence[Path] = (),
) -> Verdict:
    history = History()
    acknowledged: dict[int, list[tuple[float, float]]] = {}
    errors: list[str] = []
    undelivered = 0
    for path in producers:
        sends: dict[str, Send] = {}
        sent_s: dict[str, float] = {}
        for time_s, kind, *rest in entries(path):
            if kind == "send":
                name, partition, value = rest
                sends[value] = history.send(name, str(partition), value)
                sent_s[value] = time_s
            elif kind == "acknowledged":
                value, offset = rest
                sends[value].acknowledged(offset)
                acknowledged.setdefault(int(sends[value].partition), []).append((sent_s[value], time_s))
            elif kind == "undelivered":
                undelivered += 1
                errors.append(f"{path.stem}: {rest[0]} was not delivered: {rest[1]}")
            elif kind == "error" and rest[2]:
                errors.append(f"{path.stem}: fatal: {rest[1]}")
            elif kind == "end" and (rest[0] or rest[1]):
                errors.append(f"{path.stem}: ended with {rest[0]} records on their way {rest[1]}")
    for path in consumers:
        for _, kind, *rest in entries(path):
            if kind == "read":
                partition, offset, value = rest
                history.poll(path.stem, 0, str(partition), [(offset, value)])
            elif kind == "read error":
                errors.append(f"{path.stem}: {rest[1]}")
    _read_finally(history, final)
    for path in members:
        errors += _member_errors(path, sum(len(records) for records in history.final.values()))
    return Verdict(
        anomalies=check_all(history, acknowledged_count_min=acknowledged_count_min),
        sent=len(history.sends),
        acknowledged=history.acknowledged_count(),
        undelivered=undelivered,
        read=sum(len(records) for records in history.final.values()),
        client_errors=errors,
        windows_s=_windows(kills, acknowledged),
        standstills=_standstills(flows, acknowledged),
    )


def _read_finally(history: History, final: Path) -> None:
    records: dict[int, list[tuple[int, str]]] = {}
    for _, kind, *rest in entries(final):
        if kind == "read":
            partition, offset, value = rest
            records.setdefault(partition, []).append((offset, value))
        elif kind == "whole":
            index, end = rest
            found = records.setdefault(index, [])
            if end and (not found or found[-1][0] != end - 1):
                raise ValueError(f"partition {index} was not read to its end at {end}")
    for partition, read in records.items():
        history.record_final_read(str(partition), read)


def _member_errors(path: Path, count: int) -> Iterator[str]:
    """A group's only member is given every record, some of them perhaps twice."""
    given = 0
    for _, kind, *rest in entries(path):
        if kind == "read error":
            yield f"{path.stem}: {rest[1]}"
        elif kind == "error" and rest[2]:
            yield f"{path.stem}: fatal: {rest[1]}"
        elif kind == "given":
            given = rest[0]
    if given < count:
        yield f"{path.stem}: was given {given} records of {count}"


def _windows(kills: list[tuple[int, float]], acknowledged: dict[int, list[tuple[float, float]]]) -> list[float]:
    """Records sent before a kill do not count: word that the old leader took them may arrive after it."""
    windows = []
    for partition, kill_s in kills:
        after = [time_s for sent_s, time_s in acknowledged.get(partition, []) if sent_s > kill_s]
        windows.append(min(after) - kill_s if after else float("inf"))
    return windows


def _standstills(
    flows: list[tuple[str, float, float]], acknowledged: dict[int, list[tuple[float, float]]]
) -> list[str]:
    """The partitions are those that ever took a record: one that never did is for the count of them to notice."""
    return [
        f"partition {partition} took no record in {end_s - begin_s:.1f} s while {what}"
        for what, begin_s, end_s in flows
        for partition, records in sorted(acknowledged.items())
        if not any(begin_s <= sent_s and time_s < end_s for sent_s, time_s in records)
    ]
