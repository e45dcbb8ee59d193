"""Altering client quotas: what is refused, with Kafka's texts, and what is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.kernel.errors import InvalidRequest
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.quotas import AlterClientQuotasEntry, AlterClientQuotasRequest, EntityData, OpData

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
ALICE = (("user", "alice"),)
BYTES = "producer_byte_rate"


def altered(
    controller: Controller, image: MetadataImage, *entries: tuple[Any, list[OpData]], validate_only: bool = False
) -> Any:
    asked = [AlterClientQuotasEntry([EntityData(*part) for part in parts], ops) for parts, ops in entries]
    return controller.alter_client_quotas(image, AlterClientQuotasRequest(asked, validate_only))


REFUSED = {
    "nobody": ((), OpData(BYTES, 1.0), "Invalid empty client quota entity"),
    "unknown type": ((("group", "g"),), OpData(BYTES, 1.0), "Unhandled client quota entity type: group"),
    "empty name": ((("user", ""),), OpData(BYTES, 1.0), "Empty user not supported"),
    "ip and user": (
        (("user", "a"), ("ip", "1.2.3.4")),
        OpData(BYTES, 1.0),
        "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
    ),
    "no address": (
        (("ip", "no.such.host."),),
        OpData("connection_creation_rate", 1.0),
        "no.such.host. is not a valid IP or resolvable host.",
    ),
    "unknown key": (ALICE, OpData("nonsense", 1.0), "Invalid configuration key nonsense"),
    "key of addresses": (
        ALICE,
        OpData("connection_creation_rate", 1.0),
        "Invalid configuration key connection_creation_rate",
    ),
    "key of users": ((("ip", None),), OpData(BYTES, 1.0), f"Invalid configuration key {BYTES}"),
    "zero": (ALICE, OpData(BYTES, 0.0), f"Quota {BYTES} must be greater than 0"),
    "not a number": (ALICE, OpData(BYTES, float("nan")), f"Quota {BYTES} must be greater than 0"),
    "a fraction": (ALICE, OpData(BYTES, 1.5), f"{BYTES} cannot be a fractional value."),
    "too large": (ALICE, OpData(BYTES, 1e19), f"Proposed value for {BYTES} is too large for a LONG."),
    "too many": (
        (("ip", None),),
        OpData("connection_creation_rate", 3e9),
        "Proposed value for connection_creation_rate is too large for an INT.",
    ),
}


@pytest.mark.parametrize(("entity", "op", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused(
    controller: Controller, one_broker: MetadataImage, entity: Any, op: OpData, text: str
) -> None:
    result = altered(controller, one_broker, (entity, [op]), (ALICE, [OpData(BYTES, 5.0)]))
    refused, good = result.response.entries
    assert (refused.error_code, refused.error_message) == (InvalidRequest.code, text)
    assert good.error_code == 0
    assert [record.value for record in result.records] == [5.0]


def test_a_quota_is_set_changed_and_removed(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    both = (("user", "alice"), ("client-id", None))
    image = replayed(
        one_broker, altered(controller, one_broker, (both, [OpData(BYTES, 5.0)]), (ALICE, [OpData(BYTES, 7.0)])).records
    )
    entity = (("client-id", None), ("user", "alice"))
    assert image.client_quotas.by_entity == {entity: {BYTES: 5.0}, ALICE: {BYTES: 7.0}}
    assert altered(controller, image, (both, [OpData(BYTES, 5.0)])).records == []
    assert altered(controller, image, (both, [OpData(BYTES, 6.0)]), validate_only=True).records == []
    gone = altered(controller, image, (both, [OpData(BYTES, 0.0, True)]), (ALICE, [OpData("nonsense", 0.0, True)]))
    assert len(gone.records) == 1
    assert replayed(image, gone.records).client_quotas.by_entity == {ALICE: {BYTES: 7.0}}


def test_a_key_twice_for_one_entity_is_refused(controller: Controller, one_broker: MetadataImage) -> None:
    result = altered(controller, one_broker, (ALICE, [OpData(BYTES, 5.0), OpData(BYTES, 6.0)]))
    assert result.response.entries[0].error_code == InvalidRequest.code
    assert result.records == []
