"""A clean history to plant anomalies in."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from millbeck.simulation.histories.history import History

PARTITIONS = ("t-0", "t-1", "t-2")


def clean_history(send_count: int = 600, seed: int = 1) -> History:
    generator = random.Random(seed)
    history = History()
    log: dict[str, list[tuple[int, str]]] = {partition: [] for partition in PARTITIONS}
    read: dict[str, int] = dict.fromkeys(PARTITIONS, 0)
    offsets = dict.fromkeys(PARTITIONS, 0)
    for number in range(send_count):
        partition = generator.choice(PARTITIONS)
        entry = history.send(f"p{generator.randrange(2)}", partition, f"v{number}")
        fate = generator.random()
        if fate < 0.1:
            entry.failed()
        elif fate < 0.15:
            offsets[partition] += 1  # a hole, as a control record leaves it
        else:
            offset = offsets[partition]
            offsets[partition] += 1
            log[partition].append((offset, entry.value))
            if fate > 0.25:
                entry.acknowledged(offset)
        if generator.random() < 0.2:
            partition = generator.choice(PARTITIONS)
            end = min(len(log[partition]), read[partition] + 10)
            history.poll("c0", 0, partition, log[partition][read[partition] : end])
            read[partition] = end
    for partition, records in log.items():
        history.record_final_read(partition, records)
    return history


@pytest.fixture
def make_history() -> Callable[[], History]:
    return clean_history
