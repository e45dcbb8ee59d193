"""CreateAcls and DeleteAcls. Creating an ACL that exists succeeds and writes no record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from millbeck.controller.result import RECORD_COUNT_MAX, Result, Steps
from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import ApiError, InvalidRequest, PolicyViolation
from millbeck.kernel.ids import Uuid
from millbeck.metadata.image import AccessControlEntry, MetadataImage
from millbeck.metadata.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)
from millbeck.security.acls import AclFilter, name_of
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from millbeck.wire.messages.acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
)

ENTRIES_AT_ONCE: Final = 1000
"""The number of entries compared per step."""
_NAMED_TYPES: Final = tuple(ResourceType)[2:]
_NAMED_OPERATIONS: Final = tuple(Operation)[2:]


def create_acls(
    image: MetadataImage, request: CreateAclsRequest, *, randomness: Randomness
) -> Steps[Result[CreateAclsResponse]]:
    """Create or refuse each ACL separately; a request with too many ACLs is refused as a whole."""
    results: list[AclCreationResult] = []
    wanted: dict[AccessControlEntry, None] = {}
    for creation in request.creations:
        try:
            wanted[_checked(creation)] = None
            results.append(AclCreationResult())
        except ApiError as error:
            results.append(AclCreationResult(error.code, error.message))
    names = {entry.resource_name for entry in wanted}
    for position, entry in enumerate(image.acls.by_id.values(), 1):
        # Compare names first, because most differ: hashing every entry would take ten times as long.
        if entry.resource_name in names:
            wanted.pop(entry, None)
        if position % ENTRIES_AT_ONCE == 0:
            yield
    if len(wanted) > RECORD_COUNT_MAX:
        raise PolicyViolation("Unable to perform excessively large batch operation.")
    return Result(response=CreateAclsResponse(results=results), records=_new_records(image, wanted, randomness))


def _new_records(
    image: MetadataImage, entries: Iterable[AccessControlEntry], randomness: Randomness
) -> list[MetadataRecord]:
    used: set[Uuid] = set()
    records: list[MetadataRecord] = []
    for entry in entries:
        entry_id = randomness.uuid()
        while entry_id in image.acls.by_id or entry_id in used:
            entry_id = randomness.uuid()
        used.add(entry_id)
        records.append(record_of(entry, entry_id))
    return records


def record_of(entry: AccessControlEntry, entry_id: Uuid) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=entry_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def _checked(creation: AclCreation) -> AccessControlEntry:
    kind, name, principal = creation.resource_type, creation.resource_name, creation.principal
    if kind == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        raise InvalidRequest("Invalid empty resource name")
    if kind not in _NAMED_TYPES:
        raise InvalidRequest(f"Invalid resourceType {name_of(ResourceType, kind)}")
    if creation.resource_pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"Invalid patternType {name_of(PatternType, creation.resource_pattern_type)}")
    if creation.operation not in _NAMED_OPERATIONS:
        raise InvalidRequest(f"Invalid operation {name_of(Operation, creation.operation)}")
    if creation.permission_type not in (Permission.DENY, Permission.ALLOW):
        raise InvalidRequest(f"Invalid permissionType {name_of(Permission, creation.permission_type)}")
    if ":" not in principal:
        raise InvalidRequest(
            f"Could not parse principal from `{principal}` (no colon is present separating the principal type from "
            "the principal name)"
        )
    return AccessControlEntry(
        resource_type=kind,
        resource_name=name,
        pattern_type=creation.resource_pattern_type,
        principal=principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )


def delete_acls(image: MetadataImage, request: DeleteAclsRequest) -> Steps[Result[DeleteAclsResponse]]:
    """Delete the ACLs that match any filter; an ACL that matches several is in the result of each."""
    results: list[DeleteAclsFilterResult] = []
    removed: dict[Uuid, None] = {}
    for asked in request.filters:
        try:
            wanted = filter_of(asked)
        except ApiError as error:
            results.append(DeleteAclsFilterResult(error.code, error.message))
            continue
        matching: list[DeleteAclsMatchingAcl] = []
        for position, (entry_id, entry) in enumerate(image.acls.by_id.items(), 1):
            if wanted.matches(entry):
                removed[entry_id] = None
                matching.append(_deleted(entry))
                if len(removed) > RECORD_COUNT_MAX:
                    raise InvalidRequest(
                        f"Cannot remove more than {RECORD_COUNT_MAX} acls in a single delete operation."
                    )
            if position % ENTRIES_AT_ONCE == 0:
                yield
        results.append(DeleteAclsFilterResult(matching_acls=matching))
    return Result(
        response=DeleteAclsResponse(filter_results=results),
        records=[RemoveAccessControlEntryRecord(id=entry_id) for entry_id in removed],
    )


def filter_of(asked: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    """The filter of a request; raises `InvalidRequest` for types and operations that do not exist."""
    if asked.pattern_type_filter not in tuple(PatternType)[1:] or asked.resource_type_filter not in (
        ResourceType.ANY,
        *_NAMED_TYPES,
    ):
        raise InvalidRequest("Unknown patternFilter.")
    if asked.operation not in (Operation.ANY, *_NAMED_OPERATIONS) or asked.permission_type not in tuple(Permission)[1:]:
        raise InvalidRequest("Unknown entryFilter.")
    return AclFilter(
        resource_type=asked.resource_type_filter,
        resource_name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )


def _deleted(entry: AccessControlEntry) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
