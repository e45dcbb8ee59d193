"""Checkers of the contents of a log: every acknowledged record once, in order, and nothing else."""

from __future__ import annotations

from millbeck.simulation.histories.history import Anomaly, History, SendOutcome


def duplicates(history: History) -> list[Anomaly]:
    """A value is in its partition at most once."""
    first_seen: dict[str, tuple[str, int]] = {}
    reported: dict[tuple[str, str, int], None] = {}
    for partition, offset, value in history.observations():
        place = first_seen.setdefault(value, (partition, offset))
        if place != (partition, offset):
            reported[value, partition, offset] = None
    return [
        Anomaly("duplicate", f"{value} is at {first_seen[value]} and at {(partition, offset)}")
        for value, partition, offset in reported
    ]


def out_of_order(history: History) -> list[Anomaly]:
    """A producer's records are in a partition in the order in which they were sent."""
    offsets: dict[str, int] = {}
    for _, read_offset, value in history.observations():
        offsets.setdefault(value, read_offset)
    anomalies = []
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for send in history.sends:  # in send order for each producer and partition
        offset = offsets.get(send.value, send.offset)
        if offset is None:
            continue
        key = (send.producer, send.partition)
        before = last.get(key)
        if before is not None and offset <= before[0]:
            anomalies.append(Anomaly("order", f"{send!r} is at {offset}, the earlier {before[1]} at {before[0]}"))
        last[key] = (offset, send.value)
    return anomalies


def inconsistent_offsets(history: History) -> list[Anomaly]:
    """All readers and the producer see the same value at an offset."""
    anomalies = []
    values: dict[tuple[str, int], str] = {}
    for send in history.sends:
        if send.outcome is SendOutcome.ACKNOWLEDGED and send.offset is not None:
            value = values.setdefault((send.partition, send.offset), send.value)
            if value != send.value:
                anomalies.append(_two_values(send.partition, send.offset, value, send.value))
    for partition, offset, value in history.observations():
        other = values.setdefault((partition, offset), value)
        if other != value:
            anomalies.append(_two_values(partition, offset, other, value))
    return anomalies


def _two_values(partition: str, offset: int, one: str, other: str) -> Anomaly:
    return Anomaly("inconsistent offsets", f"{partition} has {one} and {other} at {offset}")


def failed_but_read(history: History) -> list[Anomaly]:
    """No reader sees a record that was refused, or one that was not sent to that partition."""
    anomalies: dict[tuple[str, str], Anomaly] = {}
    for partition, offset, value in history.observations():
        send = history.sent(value)
        if send is None or send.partition != partition:
            anomalies[partition, value] = Anomaly("never sent", f"{value} is at {offset} of {partition}")
        elif send.outcome is SendOutcome.FAILED:
            anomalies[partition, value] = Anomaly("failed but read", f"{send!r} is at {offset}")
    return list(anomalies.values())


def lost_acknowledged(history: History) -> list[Anomaly]:
    """Every acknowledged record is in the final read of its partition."""
    present = {partition: {value for _, value in records} for partition, records in history.final.items()}
    anomalies = []
    for send in history.sends:
        if send.outcome is not SendOutcome.ACKNOWLEDGED:
            continue
        values = present.get(send.partition)
        if values is None:
            anomalies.append(Anomaly("lost acknowledged", f"{send!r}: {send.partition} was never read to its end"))
        elif send.value not in values:
            anomalies.append(Anomaly("lost acknowledged", f"{send!r} at offset {send.offset}"))
    return anomalies


def proved_too_little(history: History, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    """Report a run that proves too little: too few acknowledgements, or no final read."""
    anomalies = []
    count = history.acknowledged_count()
    if count < acknowledged_count_min:
        anomalies.append(
            Anomaly("vacuous", f"{count} sends were acknowledged, at least {acknowledged_count_min} expected")
        )
    if not any(history.final.values()):
        anomalies.append(Anomaly("vacuous", "nothing was read in the end"))
    return anomalies
