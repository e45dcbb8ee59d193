"""The generator: the same seed, skew, and nothing that comes too late to count."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

from millbeck.pipeline.demo.orders import CUSTOMER_COUNT, LATE_SECONDS_MAX, SPEED, closing, customers, orders

BEGIN_MS = 1_700_000_100_000


def test_the_same_seed_makes_the_same_orders() -> None:
    assert list(islice(orders(3, BEGIN_MS, per_second=20), 5)) == list(islice(orders(3, BEGIN_MS, per_second=20), 5))
    assert next(orders(3, BEGIN_MS, per_second=20)) != next(orders(4, BEGIN_MS, per_second=20))


def test_few_customers_place_most_orders_and_some_are_not_known() -> None:
    made = [json.loads(event.value) for second in islice(orders(1, BEGIN_MS, per_second=500), 10) for event in second]
    counts = Counter(order["customer"] for order in made)
    known = {event.key.decode() for event in customers(BEGIN_MS)}
    assert len(known) == CUSTOMER_COUNT
    assert sum(count for _, count in counts.most_common(5)) > len(made) / 2
    assert any(customer not in known for customer in counts)


def test_orders_are_late_but_never_too_late() -> None:
    latest = BEGIN_MS
    is_late = False
    for second in islice(orders(1, BEGIN_MS, per_second=100), 20):
        began = latest
        for event in second:
            assert event.timestamp_ms >= max(BEGIN_MS, began - LATE_SECONDS_MAX * 1000)
            is_late = is_late or event.timestamp_ms < began
            latest = max(latest, event.timestamp_ms)
    assert is_late
    assert latest - BEGIN_MS > 19 * SPEED * 1000


def test_closing_events_reach_every_partition() -> None:
    made = closing(5, 3)
    assert {event.timestamp_ms for event in made} == {5}
    assert len({event.key for event in made}) == 3
