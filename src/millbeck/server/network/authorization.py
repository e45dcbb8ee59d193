"""Ask the authorizer for a call: log each decision as Kafka does, count it, and apply the dry run.

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
        """Whether it is asked only to spare questions about each of the resources that a request names."""
        return self.is_filter and self.resource_type is ResourceType.CLUSTER


class Authorization:
    def __init__(self, broker: NodeContext, *, is_dry_run: bool) -> None:
        self._broker = broker
        self.is_dry_run = is_dry_run
        self.logs_allowed = log.isEnabledFor(logging.DEBUG)
        """Read once, because decisions are made on the data path."""
        self.denied_count = 0

    def decided(self, call: AuthorizedCall, asked: AuthorizedResource, *, is_allowed: bool) -> bool:
        """Log and count a decision; returns whether the request goes on, which in a dry run it does.

        A probe is answered as decided in a dry run, too: the question that follows it is the one to be logged.
        """
        if not is_allowed:
            self.denied_count += 1
            if not asked.is_filter and self._broker.audit is not None:
                self._audit(self._broker.audit, call, asked)
        if log.isEnabledFor(logging.DEBUG if is_allowed or asked.is_filter else logging.INFO):
            self._log(call, asked, is_allowed)
        return is_allowed or (self.is_dry_run and not asked.is_probe)

    def is_any_allowed(self, call: AuthorizedCall, operation: Operation, resource_type: ResourceType) -> bool:
        """As for a probe, what follows decides in a dry run."""
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
        """What the decision is based on; empty if the authorizer does not tell."""
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
