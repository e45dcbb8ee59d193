"""Admin calls for ACLs: describe, create and delete."""

from __future__ import annotations

from collections.abc import Iterable

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.routing import call_controller
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.security.acls import AccessControlEntry, AclFilter


async def describe_acls(
    cluster: Cluster, wanted: AclFilter, *, timeout_s: float | None
) -> tuple[AccessControlEntry, ...]:
    """The ACLs that the filter matches, sorted by resource and principal."""
    from millbeck.wire.messages.acls import DescribeAclsRequest, DescribeAclsResponse

    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission_type,
    )

    async def attempt(deadline: Deadline) -> tuple[AccessControlEntry, ...]:
        response = await cluster.request(request, DescribeAclsResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        found = (
            AccessControlEntry(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                pattern_type=resource.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission_type,
            )
            for resource in response.resources
            for each in resource.acls
        )
        return tuple(sorted(found, key=sorting_key))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


def sorting_key(entry: AccessControlEntry) -> tuple[int | str, ...]:
    """The sort order of ACLs: by resource, then principal, then operation."""
    return (
        entry.resource_type,
        entry.resource_name,
        entry.pattern_type,
        entry.principal,
        entry.host,
        entry.permission_type,
        entry.operation,
    )


async def create_acls(
    cluster: Cluster, entries: Iterable[AccessControlEntry], *, timeout_s: float | None
) -> Outcomes[AccessControlEntry, AccessControlEntry]:
    """Create ACLs; it is not an error if one exists already."""
    from millbeck.wire.messages.acls import AclCreation, CreateAclsRequest, CreateAclsResponse

    async def attempt(
        wanted: list[AccessControlEntry], deadline: Deadline
    ) -> dict[AccessControlEntry, AccessControlEntry | ApiError]:
        request = CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=entry.resource_type,
                    resource_name=entry.resource_name,
                    resource_pattern_type=entry.pattern_type,
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission_type,
                )
                for entry in wanted
            ]
        )
        response = await call_controller(cluster, request, CreateAclsResponse, deadline)
        return {
            entry: from_code(result.error_code, result.error_message or "") if result.error_code else entry
            for entry, result in zip(wanted, response.results, strict=True)
        }

    return await for_each(cluster, entries, attempt, timeout_s=timeout_s)


async def delete_acls(
    cluster: Cluster, filters: Iterable[AclFilter], *, timeout_s: float | None
) -> Outcomes[AclFilter, tuple[AccessControlEntry, ...]]:
    """Delete the ACLs that match any filter; returns the ACLs deleted by each filter."""
    from millbeck.wire.messages.acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse

    async def attempt(
        wanted: list[AclFilter], deadline: Deadline
    ) -> dict[AclFilter, tuple[AccessControlEntry, ...] | ApiError]:
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.resource_name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission_type,
                )
                for each in wanted
            ]
        )
        response = await call_controller(cluster, request, DeleteAclsResponse, deadline)
        outcomes: dict[AclFilter, tuple[AccessControlEntry, ...] | ApiError] = {}
        for each, result in zip(wanted, response.filter_results, strict=True):
            failed = result.error_code or next((one.error_code for one in result.matching_acls if one.error_code), 0)
            outcomes[each] = (
                from_code(failed, result.error_message or "")
                if failed
                else tuple(
                    AccessControlEntry(
                        resource_type=one.resource_type,
                        resource_name=one.resource_name,
                        pattern_type=one.pattern_type,
                        principal=one.principal,
                        host=one.host,
                        operation=one.operation,
                        permission_type=one.permission_type,
                    )
                    for one in result.matching_acls
                )
            )
        return outcomes

    return await for_each(cluster, filters, attempt, timeout_s=timeout_s)
