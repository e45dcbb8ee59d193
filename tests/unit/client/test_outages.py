from __future__ import annotations

from millbeck.client.addresses import Address
from millbeck.client.outages import RECENT_SECONDS, Outages

A, B = Address("a", 1), Address("b", 2)
NOBODY: frozenset[Address] = frozenset()


def test_an_outage_lasts_from_the_first_attempt_to_the_first_success() -> None:
    outages = Outages()
    outages.trying(A, 10.0)
    outages.failed(A, 11.0, "refused", delay_s=0.5)
    outages.trying(A, 12.0)
    found = outages.longest(12.0, frozenset([A]))
    assert found is not None
    assert (found.since_s, found.reason, found.failures, found.retry_at_s) == (10.0, "refused", 1, 11.5)
    assert outages.reason(A) == "refused"
    assert not outages.was_reached(A)
    outages.reached(A, [A, B])
    assert outages.longest(12.0, frozenset([A])) is None
    assert outages.reason(A) is None
    assert outages.was_reached(A)


def test_only_addresses_that_the_cluster_still_has_are_remembered_as_reached() -> None:
    outages = Outages()
    outages.reached(A, [A])
    outages.reached(B, [B])
    assert (outages.was_reached(A), outages.was_reached(B)) == (False, True)


def test_an_attempt_that_has_not_failed_yet_is_no_reason() -> None:
    outages = Outages()
    outages.trying(A, 10.0)
    assert outages.reason(A) is None


def test_an_attempt_under_way_counts_before_it_has_failed() -> None:
    outages = Outages()
    outages.trying(A, 10.0)
    found = outages.longest(13.0, frozenset([A]))
    assert found is not None
    assert found.reason == "no answer yet"


def test_an_address_that_nobody_tries_again_is_not_waited_for() -> None:
    outages = Outages()
    outages.failed(A, 10.0, "refused", delay_s=0)
    assert outages.longest(10.5, NOBODY) is None, "tried once and left"
    outages.failed(A, 11.0, "refused", delay_s=0)
    assert outages.longest(11.5, NOBODY) is not None, "between two attempts"
    assert outages.longest(11.0 + RECENT_SECONDS, NOBODY) is None


def test_the_longest_is_the_one_to_tell_of() -> None:
    outages = Outages()
    outages.trying(B, 5.0)
    outages.trying(A, 4.0)
    found = outages.longest(6.0, frozenset([A, B]))
    assert found is not None
    assert found.address == A
