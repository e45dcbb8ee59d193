"""Creating and deleting ACLs: what is refused, what is written, and how much at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.result import RECORD_COUNT_MAX, finished
from millbeck.kernel.errors import ApiError, InvalidRequest, PolicyViolation
from millbeck.metadata.image import MetadataImage
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.wire.messages.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


def creation(**given: Any) -> AclCreation:
    values: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**{**values, **given})


def asked(**given: Any) -> DeleteAclsFilter:
    values: dict[str, Any] = {
        "resource_type_filter": ResourceType.ANY,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }
    return DeleteAclsFilter(**{**values, **given})


def created(controller: Controller, image: MetadataImage, *creations: AclCreation) -> Any:
    return finished(controller.create_acls(image, CreateAclsRequest(creations=list(creations))))


def deleted(controller: Controller, image: MetadataImage, *filters: DeleteAclsFilter) -> Any:
    return finished(controller.delete_acls(image, DeleteAclsRequest(filters=list(filters))))


REFUSED = {
    "empty name": ({"resource_name": ""}, "Invalid empty resource name"),
    "name of the cluster": (
        {"resource_type": ResourceType.CLUSTER},
        "The only valid name for the CLUSTER resource is kafka-cluster",
    ),
    "any type": ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
    "unknown type": ({"resource_type": 77}, "Invalid resourceType UNKNOWN"),
    "match": ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
    "any pattern": ({"resource_pattern_type": PatternType.ANY}, "Invalid patternType ANY"),
    "any operation": ({"operation": Operation.ANY}, "Invalid operation ANY"),
    "unknown operation": ({"operation": 99}, "Invalid operation UNKNOWN"),
    "any permission": ({"permission_type": Permission.ANY}, "Invalid permissionType ANY"),
    "no colon": (
        {"principal": "alice"},
        "Could not parse principal from `alice` (no colon is present separating the principal type from the principal "
        "name)",
    ),
}


@pytest.mark.parametrize(("given", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_kafkas_text_while_the_others_are_created(
    controller: Controller, one_broker: MetadataImage, given: dict[str, Any], text: str
) -> None:
    result = created(controller, one_broker, creation(**given), creation())
    refused, accepted = result.response.results
    assert (refused.error_code, refused.error_message) == (InvalidRequest.code, text)
    assert accepted.error_code == 0
    assert len(result.records) == 1


@pytest.mark.parametrize(
    "given",
    [
        {"resource_name": "x" * 300},
        {"resource_name": "with spaces"},
        {"host": ""},
        {"host": "10.0.0.0/8"},
        {"principal": "Group:z"},
        {"operation": Operation.CREATE_TOKENS},
        {"resource_type": ResourceType.USER},
        {"operation": Operation.TWO_PHASE_COMMIT},
    ],
)
def test_accepted_as_by_kafka(controller: Controller, one_broker: MetadataImage, given: dict[str, Any]) -> None:
    result = created(controller, one_broker, creation(**given))
    assert result.response.results[0].error_code == 0
    assert len(result.records) == 1


def test_an_acl_is_written_once(controller: Controller, one_broker: MetadataImage, replayed: Replayed) -> None:
    first = created(controller, one_broker, creation(), creation(), creation(host="10.0.0.1"))
    assert [each.error_code for each in first.response.results] == [0, 0, 0]
    assert len(first.records) == 2
    assert len({record.id for record in first.records}) == 2
    image = replayed(one_broker, first.records)
    again = created(controller, image, creation(), creation(operation=Operation.WRITE))
    assert [each.error_code for each in again.response.results] == [0, 0]
    assert [record.operation for record in again.records] == [Operation.WRITE]


def test_more_than_one_batch_of_acls_is_refused_as_a_whole(controller: Controller, one_broker: MetadataImage) -> None:
    creations = [creation(resource_name=f"t{index}") for index in range(RECORD_COUNT_MAX + 1)]
    with pytest.raises(PolicyViolation, match="excessively large"):
        created(controller, one_broker, *creations)
    assert len(created(controller, one_broker, *creations[1:]).records) == RECORD_COUNT_MAX


def test_filters_delete_what_they_match_and_say_what_it_was(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    creations = [
        creation(),
        creation(operation=Operation.WRITE),
        creation(resource_name="ord", resource_pattern_type=PatternType.PREFIXED),
        creation(principal="User:bob"),
    ]
    image = replayed(one_broker, created(controller, one_broker, *creations).records)
    result = deleted(
        controller,
        image,
        asked(resource_name_filter="orders", pattern_type_filter=PatternType.MATCH, principal_filter="User:alice"),
        asked(operation=Operation.WRITE),
        asked(resource_name_filter="nothing"),
        asked(pattern_type_filter=PatternType.UNKNOWN),
        asked(operation=77),
    )
    found = result.response.filter_results
    assert [len(each.matching_acls) for each in found] == [3, 1, 0, 0, 0]
    assert [each.error_code for each in found] == [0, 0, 0, InvalidRequest.code, InvalidRequest.code]
    assert [each.error_message for each in found[3:]] == ["Unknown patternFilter.", "Unknown entryFilter."]
    assert len(result.records) == 3, "each is removed once, though two filters match it"
    left = replayed(image, result.records)
    assert [entry.principal for entry in left.acls.by_id.values()] == ["User:bob"]


def test_one_request_does_not_delete_more_than_a_batch(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    creations = [creation(resource_name=f"t{index}") for index in range(RECORD_COUNT_MAX)]
    image = replayed(one_broker, created(controller, one_broker, *creations).records)
    assert len(deleted(controller, image, asked()).records) == RECORD_COUNT_MAX
    image = replayed(image, created(controller, image, creation()).records)
    with pytest.raises(ApiError, match="Cannot remove more than 10000 acls in a single delete operation"):
        deleted(controller, image, asked())


def test_large_changes_are_decided_in_steps(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    creations = [creation(resource_name=f"t{index}") for index in range(5000)]
    image = replayed(one_broker, created(controller, one_broker, *creations).records)
    assert len(list(controller.create_acls(image, CreateAclsRequest(creations=[creation()])))) == 5
    assert len(list(controller.delete_acls(image, DeleteAclsRequest(filters=[asked(), asked()])))) == 10
