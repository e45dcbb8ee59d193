"""Whether the user of a request has the role that a call needs for its subject."""

from __future__ import annotations

from millbeck.registry.rest.calls import Call
from millbeck.registry.rest.requests import Request
from millbeck.registry.roles import Role
from millbeck.registry.subjects import context_prefix, normal_context


def check_permission(call: Call, request: Request) -> None:
    """Raise `Forbidden` without the role. Calls without a subject list only what the user can read."""
    role = call.role
    if call.method == "DELETE" and request.flag("permanent"):
        role = Role.ADMIN
    for subject in _subjects(call, request):
        request.require(role, subject)


def _subjects(call: Call, request: Request) -> list[str]:
    if call.segments[:1] in (("config",), ("mode",)):
        subject = request.settings_subject
        if subject is not None:
            return [subject]
        return [""] if call.writes else []
    if "subject" in request.variables:
        return list(dict.fromkeys((request.own_subject, request.subject)))
    if call.writes:
        return [context_prefix(normal_context(request.variables["context"]))]
    return []
