"""Suggests ACLs from an audit: the smallest ones that would have allowed the denied requests.

It is used for a cluster that gets its first ACLs: with ``millbeck.authorizer.dry.run=true`` everything is allowed, and
the audit lists what would have been denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from millbeck.security.acls import WILDCARD, AccessControlEntry
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

DENIED: Final = "denied"
IMPLIED: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""For each operation, the other operations whose ACLs include it."""


class Denial(NamedTuple):
    """A denied operation on a resource."""

    principal: str
    resource_type: ResourceType
    name: str
    operation: Operation


def suggested(
    events: Sequence[Mapping[str, Any]], prefixes: Sequence[str] = (), *, hosts: bool = False
) -> list[AccessControlEntry]:
    """The ACLs that would have allowed the denied operations in the events of an audit.

    Names that begin with one of ``prefixes`` get one ACL for the prefix. With ``hosts`` an ACL is only for the denied
    address, otherwise for all addresses.
    """
    denied: dict[tuple[Denial, str], None] = {}
    by_request: dict[tuple[str, str], set[tuple[Operation, ResourceType]]] = {}
    for event in events:
        wanted = _wanted(event)
        if wanted is None:
            continue
        denied[wanted, str(event.get("api", ""))] = None
        asked = by_request.setdefault((wanted.principal, str(event.get("api", ""))), set())
        asked.add((wanted.operation, wanted.resource_type))
    origins = _hosts_of(events) if hosts else {}
    kept = [wanted for wanted, api in denied if not _has_narrower(wanted, api, by_request[wanted.principal, api])]
    there = set(kept)
    entries: dict[AccessControlEntry, None] = {}
    for wanted in kept:
        if any(wanted._replace(operation=stronger) in there for stronger in IMPLIED.get(wanted.operation, ())):
            continue
        for host in sorted(origins.get(wanted, ())) or [WILDCARD]:
            entries[_entry(wanted, prefixes, host)] = None
    return sorted(entries, key=_order)


def _wanted(event: Mapping[str, Any]) -> Denial | None:
    """The denied operation of an event; None for other events, and for denials by a DENY ACL, which no ACL could
    allow."""
    if event.get("event") != DENIED or "MatchingAcl" in str(event.get("rule", "")):
        return None
    kind, _, name = str(event.get("resource", "")).partition(":")
    operation = str(event.get("operation", ""))
    if kind not in ResourceType.__members__ or operation not in Operation.__members__ or not event.get("principal"):
        return None
    return Denial(str(event["principal"]), ResourceType[kind], name, Operation[operation])


def _hosts_of(events: Iterable[Mapping[str, Any]]) -> dict[Denial, set[str]]:
    found: dict[Denial, set[str]] = {}
    for event in events:
        wanted = _wanted(event)
        if wanted is not None and event.get("host"):
            found.setdefault(wanted, set()).add(str(event["host"]))
    return found


def _has_narrower(wanted: Denial, api: str, asked: set[tuple[Operation, ResourceType]]) -> bool:
    """Whether a narrower denied operation would suffice for the request, such as CREATE on the topic instead of the
    cluster."""
    from millbeck.server.requests.routes import ROUTES
    from millbeck.wire.api_keys import APIS

    for route in ROUTES:
        if APIS[route.api_key].name != api:
            continue
        for need in route.needs:
            either = (need, *need.alternatives)
            position = next(
                (
                    number
                    for number, each in enumerate(either)
                    if (each.operation, each.resource_type) == (wanted.operation, wanted.resource_type)
                ),
                None,
            )
            if position is not None and wanted.resource_type is ResourceType.CLUSTER:
                return any(
                    (each.operation, each.resource_type) in asked
                    for each in either
                    if each.resource_type is not ResourceType.CLUSTER and each.operation == wanted.operation
                )
    return False


def _entry(wanted: Denial, prefixes: Sequence[str], host: str) -> AccessControlEntry:
    is_cluster = wanted.resource_type is ResourceType.CLUSTER
    prefix = None if is_cluster else next((each for each in prefixes if wanted.name.startswith(each)), None)
    return AccessControlEntry(
        resource_type=wanted.resource_type,
        resource_name=CLUSTER_NAME if is_cluster else wanted.name if prefix is None else prefix,
        pattern_type=PatternType.LITERAL if prefix is None else PatternType.PREFIXED,
        principal=wanted.principal,
        host=host,
        operation=wanted.operation,
        permission_type=Permission.ALLOW,
    )


def _order(entry: AccessControlEntry) -> tuple[object, ...]:
    return (entry.principal, entry.resource_type, entry.resource_name, entry.host, entry.operation)
