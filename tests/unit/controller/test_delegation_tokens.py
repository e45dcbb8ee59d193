"""Creating, renewing and expiring delegation tokens: times, who may, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import delegation_tokens
from millbeck.controller.delegation_tokens import DelegationTokenControl
from millbeck.controller.options import TokenOptions
from millbeck.controller.result import finished
from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import (
    ApiError,
    DelegationTokenAuthDisabled,
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
    PolicyViolation,
    UnsupportedVersion,
)
from millbeck.metadata.features import METADATA_VERSION
from millbeck.metadata.image import MetadataImage
from millbeck.security.delegation_tokens import token_hmac
from millbeck.security.principal import Principal
from millbeck.wire.messages.authentication import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]

NOW = 1_000_000
LIFETIME, EXPIRY = 10_000, 1_000
CONTROL = DelegationTokenControl(TokenOptions(secret="key", lifetime_ms_max=LIFETIME, expiry_time_ms=EXPIRY))
ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))


@pytest.fixture
def randomness() -> Randomness:
    return _Counting()


class _Counting:
    def __init__(self) -> None:
        self.count = 0

    def below(self, bound: int) -> int:
        return 0

    def uuid(self) -> bytes:
        self.count += 1
        return self.count.to_bytes(16, "big")


def created(image: MetadataImage, randomness: Randomness, **given: Any) -> Any:
    values: dict[str, Any] = {"renewers": [CreatableRenewers("User", "bob")], "max_lifetime_ms": -1, **given}
    request = CreateDelegationTokenRequest(**values)
    return CONTROL.create(image, request, requester=ALICE, now_ms=NOW, randomness=randomness)


def renewed(image: MetadataImage, secret: bytes, who: Principal = ALICE, period: int = -1, now_ms: int = NOW) -> Any:
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period)
    return finished(CONTROL.renew(image, request, requester=who, now_ms=now_ms))


def expired(image: MetadataImage, secret: bytes, who: Principal = ALICE, period: int = -1, now_ms: int = NOW) -> Any:
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period)
    return finished(CONTROL.expire(image, request, requester=who, now_ms=now_ms))


@pytest.mark.parametrize(
    ("asked", "lifetime", "expiry"),
    [(-1, LIFETIME, EXPIRY), (0, LIFETIME, EXPIRY), (5000, 5000, EXPIRY), (500, 500, 500), (10**15, LIFETIME, EXPIRY)],
)
def test_lifetimes(one_broker: MetadataImage, randomness: Randomness, asked: int, lifetime: int, expiry: int) -> None:
    result = created(one_broker, randomness, max_lifetime_ms=asked)
    (record,) = result.records
    response = result.response
    assert (response.issue_timestamp_ms, response.max_timestamp_ms) == (NOW, NOW + lifetime)
    assert response.expiry_timestamp_ms == NOW + expiry
    assert (record.issue_timestamp, record.max_timestamp, record.expiration_timestamp) == (
        NOW,
        NOW + lifetime,
        NOW + expiry,
    )
    assert (record.owner, record.requester, record.renewers) == ("User:alice", "User:alice", ["User:bob"])
    assert response.hmac == token_hmac("key", record.token_id)
    assert len(response.hmac) == 64


def test_a_token_for_another_owner(one_broker: MetadataImage, randomness: Randomness) -> None:
    result = created(one_broker, randomness, owner_principal_type="User", owner_principal_name="carol")
    (record,) = result.records
    assert (record.owner, record.requester) == ("User:carol", "User:alice")
    assert result.response.principal_name == "carol"


def test_an_owner_has_a_bounded_number_of_tokens(
    one_broker: MetadataImage, randomness: Randomness, replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delegation_tokens, "TOKENS_PER_OWNER_MAX", 2)
    image = one_broker
    for _ in range(2):
        image = replayed(image, created(image, randomness).records)
    with pytest.raises(PolicyViolation, match="User:alice has 2 delegation tokens"):
        created(image, randomness)
    assert created(image, randomness, owner_principal_type="User", owner_principal_name="carol").records


def test_the_names_of_renewers_are_bounded(one_broker: MetadataImage, randomness: Randomness) -> None:
    with pytest.raises(PolicyViolation, match="renewers"):
        created(one_broker, randomness, renewers=[CreatableRenewers("User", "r" * 100)] * 41)
    assert created(one_broker, randomness, renewers=[CreatableRenewers("User", "r" * 100)] * 40).records


def test_renewers_are_users(one_broker: MetadataImage, randomness: Randomness) -> None:
    with pytest.raises(InvalidPrincipalType):
        created(one_broker, randomness, renewers=[CreatableRenewers("Group", "x")])


@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
def test_owner_requester_and_renewers_may_renew(
    one_broker: MetadataImage, randomness: Randomness, replayed: Replayed, who: Principal
) -> None:
    result = created(one_broker, randomness, owner_principal_type="User", owner_principal_name="carol")
    image = replayed(one_broker, result.records)
    later = renewed(image, result.response.hmac, who, now_ms=NOW + 900)
    assert later.response.expiry_timestamp_ms == NOW + 900 + EXPIRY
    assert renewed(image, result.response.hmac, who, period=10).response.expiry_timestamp_ms == NOW + 10
    (record,) = later.records
    assert (record.owner, record.max_timestamp) == ("User:carol", NOW + LIFETIME)
    after = replayed(image, later.records)
    (token,) = after.delegation_tokens.by_id.values()
    assert token.expiration_timestamp == NOW + 900 + EXPIRY


def test_nobody_renews_beyond_the_lifetime(
    one_broker: MetadataImage, randomness: Randomness, replayed: Replayed
) -> None:
    result = created(one_broker, randomness, max_lifetime_ms=1200)
    image = replayed(one_broker, result.records)
    assert renewed(image, result.response.hmac, now_ms=NOW + 900).response.expiry_timestamp_ms == NOW + 1200


REFUSED: dict[str, tuple[dict[str, Any], type[ApiError]]] = {
    "another user": ({"who": Principal("User", "mallory")}, DelegationTokenOwnerMismatch),
    "another secret": ({"secret": b"x" * 64}, DelegationTokenNotFound),
    "no secret": ({"secret": b""}, DelegationTokenNotFound),
    "too late": ({"now_ms": NOW + EXPIRY + 1}, DelegationTokenExpired),
}


@pytest.mark.parametrize(("given", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(
    one_broker: MetadataImage, randomness: Randomness, replayed: Replayed, given: dict[str, Any], error: type[ApiError]
) -> None:
    result = created(one_broker, randomness)
    image = replayed(one_broker, result.records)
    arguments = {"secret": result.response.hmac} | given
    with pytest.raises(error):
        renewed(image, **arguments)
    with pytest.raises(error):
        expired(image, **arguments, period=5)


def test_expiring(one_broker: MetadataImage, randomness: Randomness, replayed: Replayed) -> None:
    result = created(one_broker, randomness)
    image = replayed(one_broker, result.records)
    secret = result.response.hmac
    assert expired(image, secret, BOB, period=20).response.expiry_timestamp_ms == NOW + 20
    assert expired(image, secret, period=10**12).response.expiry_timestamp_ms == NOW + LIFETIME
    # At once, however old it is.
    gone = expired(image, secret, BOB, now_ms=NOW + 10 * LIFETIME)
    assert gone.response.expiry_timestamp_ms == -1
    assert replayed(image, gone.records).delegation_tokens.by_id == {}


def test_what_has_expired_is_removed(one_broker: MetadataImage, randomness: Randomness, replayed: Replayed) -> None:
    records = [created(one_broker, randomness, max_lifetime_ms=each).records[0] for each in (100, 100, 5000)]
    image = replayed(one_broker, records)
    assert finished(CONTROL.remove_expired(image, now_ms=NOW + 100)).records == []
    result = finished(CONTROL.remove_expired(image, now_ms=NOW + 101))
    left = replayed(image, result.records).delegation_tokens.by_id
    assert [each.max_timestamp for each in left.values()] == [NOW + 5000]


def test_without_a_key_or_with_an_old_metadata_version_there_are_none(
    one_broker: MetadataImage, randomness: Randomness
) -> None:
    request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
    disabled = DelegationTokenControl(TokenOptions())
    with pytest.raises(DelegationTokenAuthDisabled):
        disabled.create(one_broker, request, requester=ALICE, now_ms=NOW, randomness=randomness)
    with pytest.raises(DelegationTokenAuthDisabled):
        finished(disabled.renew(one_broker, RenewDelegationTokenRequest(), requester=ALICE, now_ms=NOW))
    old = replace(one_broker, features=replace(one_broker.features, levels={METADATA_VERSION: 13}))
    with pytest.raises(UnsupportedVersion):
        created(old, randomness)
