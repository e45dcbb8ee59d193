"""Reports administrative operations to the audit, except metadata changes, which are reported when they are
committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.security.audit.events import AuditKind, event_of

if TYPE_CHECKING:
    from millbeck.server.network.call import Call


def audited(call: Call, kind: str, name: str, *, before: object = None, after: object = None) -> None:
    """Report a change with the state before and after; None means that it did not exist or was removed."""
    audit = call.broker.audit
    if audit is None:
        return
    audit.record(
        event_of(
            AuditKind.CHANGED,
            {"before": before, "after": after},
            principal=call.principal.text,
            host=call.peer_host,
            api=call.api_name,
            kind=kind,
            name=name,
        )
    )
