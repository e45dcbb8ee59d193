"""Which quota applies, and who shares it."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.server.quotas import limits as limits_module
from millbeck.server.quotas.limits import QuotaLimits
from millbeck.server.quotas.rates import WindowedRate

KEY = "producer_byte_rate"
PRECEDENCE: tuple[tuple[tuple[str, str | None], ...], ...] = (
    (("client-id", "app"), ("user", "alice")),
    (("client-id", None), ("user", "alice")),
    (("user", "alice"),),
    (("client-id", "app"), ("user", None)),
    (("client-id", None), ("user", None)),
    (("user", None),),
    (("client-id", "app"),),
    (("client-id", None),),
)


def of(*entities: Any, quota: float = 100.0) -> QuotaLimits[WindowedRate]:
    limits: QuotaLimits[WindowedRate] = QuotaLimits(KEY, WindowedRate)
    limits.follow({entity: {KEY: quota + index} for index, entity in enumerate(entities)})
    return limits


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_specific_entity_applies(first: int) -> None:
    limit = of(*PRECEDENCE[first:]).of("alice", "app", 0)
    assert limit is not None
    assert limit.quota == 100.0


def test_nothing_else_applies() -> None:
    limits = of((("user", "bob"),), (("client-id", "other"),), (("client-id", "app"), ("user", "bob")))
    assert limits.of("alice", "app", 0) is None
    assert not of().is_set


SHARED = {
    "a user's": ((("user", "alice"),), ("alice", "one"), ("alice", "two"), True),
    "a client id's": ((("client-id", "app"),), ("alice", "app"), ("bob", "app"), True),
    "a user's for each client": ((("client-id", None), ("user", "alice")), ("alice", "one"), ("alice", "two"), False),
    "each user's": ((("user", None),), ("alice", "one"), ("bob", "one"), False),
    "each user's for all clients": ((("user", None),), ("alice", "one"), ("alice", "two"), True),
    "each client id's": ((("client-id", None),), ("alice", "one"), ("alice", "two"), False),
}


@pytest.mark.parametrize(("entity", "one", "other", "is_shared"), SHARED.values(), ids=SHARED.keys())
def test_who_shares_a_bucket(entity: Any, one: tuple[str, str], other: tuple[str, str], is_shared: bool) -> None:
    limits = of(entity)
    first, second = limits.of(*one, 0), limits.of(*other, 0)
    assert first is not None
    assert second is not None
    assert (first.bucket is second.bucket) is is_shared


def test_what_was_counted_stays_when_a_quota_changes() -> None:
    limits = of((("user", "alice"),))
    before = limits.of("alice", "app", 0)
    limits.follow({(("user", "alice"),): {KEY: 7.0}})
    after = limits.of("alice", "app", 0)
    assert before is not None
    assert after is not None
    assert (after.quota, after.bucket) == (7.0, before.bucket)
    limits.follow({})
    assert limits.of("alice", "app", 0) is None
    assert limits.bucket_count == 0


def test_client_ids_do_not_make_buckets_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "BUCKETS_MAX", 10)
    limits = of((("client-id", None),))
    for number in range(100):
        assert limits.of("alice", f"client-{number}", number) is not None
    assert limits.bucket_count == 10
    limits.of("alice", "late", limits_module.IDLE_MS_MAX + 200)
    assert limits.bucket_count == 1


def test_long_client_ids_are_told_apart_and_not_kept() -> None:
    limits = of((("client-id", None),), (("client-id", "x" * 300),), quota=7)
    one, other = "a" * 30_000 + "1", "a" * 30_000 + "2"
    first = limits.of("alice", one, 0)
    assert first is not None
    again, second = limits.of("bob", one, 0), limits.of("alice", other, 0)
    assert again is not None
    assert second is not None
    assert again.bucket is first.bucket
    assert second.bucket is not first.bucket
    assert all(len(part or "") < 100 for owner in limits._buckets for part in owner)
    assert not limits._found
    named = limits.of("alice", "x" * 300, 0)
    assert named is not None
    assert named.quota == 8
