"""Asks the authorizer on behalf of calls: logs each decision as Kafka does, counts it, and applies the dry run.

In a dry run (``millbeck.authorizer.dry.run``) decisions are made, counted and logged as usual, but everything is
allowed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from millbeck.security.acls import name_of
from millbeck.security.audit.events import AuditKind, AuditTrail, event_of
from millbeck.security.authorizer import (
    CLUSTER_NAME,
    AllowAll,
    Operation,
    ResourceType,
    authorized_operations,
)
from millbeck.security.principal import Principal
from millbeck.security.standard_authorizer import StandardAuthorizer

if TYPE_CHECKING:
    from millbeck.server.context import NodeContext

log: Final = logging.getLogger("kafka.authorizer.logger")
"""The logger's name in Kafka."""


class AuthorizedCall(Protocol):
    """The part of a call that an authorization decision needs."""

    @property
    def principal(self) -> Principal: ...

    @property
    def peer_host(self) -> str: ...

    @property
    def api_name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class AuthorizedResource:
    operation: Operation
    resource_type: ResourceType
    name: str
    is_filter: bool = False
    """Whether a denied resource is only left out of the response."""

    @property
    def is_probe(self) -> bool:
        """Whether the operation on the cluster is checked only because, if allowed, the resources of the request need
        no checks.
        """
        return self.is_filter and self.resource_type is ResourceType.CLUSTER


class Authorization:
    def __init__(self, broker: NodeContext, *, is_dry_run: bool) -> None:
        self._broker = broker
        self.is_dry_run = is_dry_run
        self.logs_allowed = log.isEnabledFor(logging.DEBUG)
        """Read once, because decisions are made on the data path."""
        self.denied_count = 0

    def decided(self, call: AuthorizedCall, asked: AuthorizedResource, *, is_allowed: bool) -> bool:
        """Log and count a decision; returns whether the request is allowed, which in a dry run it always is.

        A probe returns its decision also in a dry run, so that the checks of the single resources follow and are
        logged.
        """
        if not is_allowed:
            self.denied_count += 1
            if not asked.is_filter and self._broker.audit is not None:
                self._audit(self._broker.audit, call, asked)
        if log.isEnabledFor(logging.DEBUG if is_allowed or asked.is_filter else logging.INFO):
            self._log(call, asked, is_allowed)
        return is_allowed or (self.is_dry_run and not asked.is_probe)

    def is_any_allowed(self, call: AuthorizedCall, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the operation is allowed on any resource of the type. Returns the decision also in a dry run, like a
        probe: the checks that follow apply the dry run.
        """
        authorizer = self._broker.authorizer
        return authorizer.authorize_any(call.principal, call.peer_host, operation, resource_type)

    def allowed_operations(self, call: AuthorizedCall, resource_type: ResourceType, name: str) -> int:
        """The bit field of operations that a client may do on a resource; 0 for the cluster if it may not describe
        it."""
        authorizer = AllowAll() if self.is_dry_run else self._broker.authorizer
        if resource_type is ResourceType.CLUSTER and not authorizer.authorize(
            call.principal, call.peer_host, Operation.DESCRIBE, resource_type, CLUSTER_NAME
        ):
            return 0
        return authorized_operations(authorizer, call.principal, call.peer_host, resource_type, name)

    def _audit(self, audit: AuditTrail, call: AuthorizedCall, asked: AuthorizedResource) -> None:
        audit.record(
            event_of(
                AuditKind.DENIED,
                principal=call.principal.text,
                host=call.peer_host,
                operation=name_of(Operation, asked.operation),
                resource=f"{asked.resource_type.name}:{asked.name}",
                api=call.api_name,
                rule=self._rule(call, asked),
                dry_run="allowed" if self.is_dry_run else "",
            )
        )

    def _rule(self, call: AuthorizedCall, asked: AuthorizedResource) -> str:
        """The rule that the decision is based on; empty if the authorizer does not provide it."""
        authorizer = self._broker.authorizer
        if not isinstance(authorizer, StandardAuthorizer):
            return ""
        found = authorizer.explain(call.principal, call.peer_host, asked.operation, asked.resource_type, asked.name)
        return str(found)

    def _log(self, call: AuthorizedCall, asked: AuthorizedResource, is_allowed: bool) -> None:
        rule = self._rule(call, asked)
        based_on = f" based on rule {rule}" if rule else ""
        log.log(
            logging.DEBUG if is_allowed or asked.is_filter else logging.INFO,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s with "
            "resourceRefCount = 1%s%s",
            call.principal,
            "Allowed" if is_allowed else "Denied",
            name_of(Operation, asked.operation),
            call.peer_host,
            asked.resource_type.name.replace("_", " ").title().replace(" ", ""),
            asked.name,
            call.api_name,
            based_on,
            ", allowed in this dry run" if self.is_dry_run and not is_allowed else "",
        )
