"""Setting and deleting SCRAM credentials: what is refused, what is written, and how much at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.result import RECORD_COUNT_MAX, finished
from millbeck.kernel.errors import (
    DuplicateResource,
    PolicyViolation,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from millbeck.metadata.features import METADATA_VERSION
from millbeck.metadata.image import MetadataImage
from millbeck.security.sasl.scram_messages import ScramMechanism, salted_password, scram_keys
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]

SALTED = salted_password(ScramMechanism.SHA_256, "secret", b"salt", 4096)


def upsertion(name: str = "alice", **given: Any) -> ScramCredentialUpsertion:
    values: dict[str, Any] = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": SALTED}
    return ScramCredentialUpsertion(name, **{**values, **given})


def deletion(name: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name, mechanism)


def altered(controller: Controller, image: MetadataImage, *changes: Any) -> Any:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    return finished(controller.alter_user_scram_credentials(image, request))


REFUSED = {
    "too few iterations": (upsertion(iterations=4095), UnacceptableCredential, "Too few iterations"),
    "too many iterations": (upsertion(iterations=16385), UnacceptableCredential, "Too many iterations"),
    "no name": (upsertion(""), UnacceptableCredential, "Username must not be empty"),
    "no password": (upsertion(salted_password=b""), UnacceptableCredential, "The salted password must not be empty"),
    "unknown mechanism": (upsertion(mechanism=3), UnsupportedSaslMechanism, "Unknown SCRAM mechanism"),
    "mechanism 0": (deletion(mechanism=0), UnsupportedSaslMechanism, "Unknown SCRAM mechanism"),
    "nothing to delete": (deletion(), ResourceNotFound, "Attempt to delete a user credential that does not exist"),
}


@pytest.mark.parametrize(("change", "error", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_kafkas_text_while_the_others_are_changed(
    controller: Controller, one_broker: MetadataImage, change: Any, error: Any, text: str
) -> None:
    result = altered(controller, one_broker, change, upsertion("bob"))
    outcomes = {each.user: (each.error_code, each.error_message) for each in result.response.results}
    assert outcomes == {change.name: (error.code, text), "bob": (0, None)}
    assert [record.name for record in result.records] == ["bob"]


def test_the_keys_are_written_and_not_the_salted_password(controller: Controller, one_broker: MetadataImage) -> None:
    (record,) = altered(controller, one_broker, upsertion(iterations=16384, salt=b"")).records
    assert (record.name, record.mechanism, record.salt, record.iterations) == ("alice", 1, b"", 16384)
    assert (record.stored_key, record.server_key) == scram_keys(ScramMechanism.SHA_256, SALTED)
    (record,) = altered(controller, one_broker, upsertion(mechanism=2)).records
    assert (record.stored_key, record.server_key) == scram_keys(ScramMechanism.SHA_512, SALTED)


def test_deleting_leaves_the_other_mechanism(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    image = replayed(one_broker, altered(controller, one_broker, upsertion()).records)
    image = replayed(image, altered(controller, image, upsertion(mechanism=2)).records)
    assert sorted(image.scram.by_user) == [(1, "alice"), (2, "alice")]
    image = replayed(image, altered(controller, image, deletion(mechanism=2)).records)
    assert sorted(image.scram.by_user) == [(1, "alice")]


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion(), upsertion(mechanism=2)),
        (deletion("bob"), upsertion("bob")),
        (deletion("bob"), deletion("bob"), deletion("bob")),
        (upsertion(), upsertion(), upsertion(iterations=1)),
    ],
)
def test_a_user_may_be_named_once(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed, changes: Any
) -> None:
    image = replayed(one_broker, altered(controller, one_broker, upsertion("bob")).records)
    result = altered(controller, image, *changes)
    (outcome,) = result.response.results
    assert outcome.error_code == DuplicateResource.code
    assert outcome.error_message == "A user credential cannot be altered twice in the same request"
    assert result.records == []


def test_older_metadata_versions_have_no_credentials(controller: Controller, one_broker: MetadataImage) -> None:
    old = replace(one_broker, features=replace(one_broker.features, levels={METADATA_VERSION: 10}))
    (outcome,) = altered(controller, old, upsertion()).response.results
    assert outcome.error_code == UnsupportedVersion.code
    first = replace(one_broker, features=replace(one_broker.features, levels={METADATA_VERSION: 11}))
    assert altered(controller, first, upsertion()).response.results[0].error_code == 0


def test_large_changes_are_decided_in_steps_and_bounded(controller: Controller, one_broker: MetadataImage) -> None:
    many = [upsertion(f"u{index}") for index in range(RECORD_COUNT_MAX + 1)]
    with pytest.raises(PolicyViolation, match="excessively large"):
        altered(controller, one_broker, *many)
    request = AlterUserScramCredentialsRequest(upsertions=many[:2000])
    assert len(list(controller.alter_user_scram_credentials(one_broker, request))) == 22
