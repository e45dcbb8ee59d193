"""The calls for settings and modes."""

from __future__ import annotations

from typing import Final

from millbeck.client.schemas.log_records import Json
from millbeck.registry.errors import CompatibilityNotConfigured, ModeNotConfigured, OperationNotPermitted
from millbeck.registry.rest.calls import FLAG, Answer, Calls
from millbeck.registry.rest.requests import Request
from millbeck.registry.roles import Role
from millbeck.registry.settings import delete_config, delete_mode, set_config, set_mode

CALLS: Final = Calls()
_CONFIG: Final = {
    "compatibility": "string",
    "normalize": "boolean",
    "alias": "string",
    "compatibilityGroup": "string",
    "compatibilityPolicy": "string",
    "validateFields": "boolean",
    "defaultMetadata": "object",
    "overrideMetadata": "object",
    "defaultRuleSet": "object",
    "overrideRuleSet": "object",
}
_GLOBAL: Final = {"defaultToGlobal": FLAG}


@CALLS.call("GET", "/config", parameters=_GLOBAL)
@CALLS.call("GET", "/config/{subject}", parameters=_GLOBAL)
async def config(request: Request) -> Answer:
    """The settings of the registry, a context or a subject."""
    state, subject = request.service.state, request.settings_subject
    default: Json = {"compatibilityLevel": request.service.instance.settings.compatibility}
    if subject is None and not request.flag("defaultToGlobal"):
        return Answer({**default, **state.configs.get(None, {})})
    if request.flag("defaultToGlobal"):
        merged = dict(default)
        for each in reversed(list(state.settings_chain(subject))):
            merged.update(state.configs.get(each, {}))
        return Answer(merged)
    found = state.configs.get(subject)
    if found is None:
        raise CompatibilityNotConfigured(f"Subject '{subject}' does not have subject-level compatibility configured")
    return Answer(found)


@CALLS.call("PUT", "/config", body=_CONFIG, writes=True, role=Role.ADMIN)
@CALLS.call("PUT", "/config/{subject}", body=_CONFIG, writes=True, role=Role.ADMIN)
async def change_config(request: Request) -> Answer:
    """Change settings; absent members stay as they are, null removes one."""
    subject, changes = request.settings_subject, request.body()
    return Answer(*await request.service.instance.submit(lambda state: set_config(state, subject, changes)))


@CALLS.call("DELETE", "/config", writes=True, role=Role.ADMIN)
@CALLS.call("DELETE", "/config/{subject}", writes=True, role=Role.ADMIN)
async def remove_config(request: Request) -> Answer:
    """Remove settings, so that those of the parent level apply."""
    subject = request.settings_subject
    return Answer(*await request.service.instance.submit(lambda state: delete_config(state, subject)))


@CALLS.call("GET", "/mode", parameters=_GLOBAL)
@CALLS.call("GET", "/mode/{subject}", parameters=_GLOBAL)
async def mode(request: Request) -> Answer:
    """The mode of the registry, a context or a subject."""
    state, subject = request.service.state, request.settings_subject
    if subject is None or request.flag("defaultToGlobal"):
        return Answer({"mode": state.mode(subject)})
    found = state.modes.get(subject)
    if found is None:
        raise ModeNotConfigured(f"Subject '{subject}' does not have subject-level mode configured")
    return Answer({"mode": found})


@CALLS.call("PUT", "/mode", parameters={"force": FLAG}, body={"mode": "string"}, writes=True, role=Role.ADMIN)
@CALLS.call("PUT", "/mode/{subject}", parameters={"force": FLAG}, body={"mode": "string"}, writes=True, role=Role.ADMIN)
async def change_mode(request: Request) -> Answer:
    """Set a mode."""
    subject, wanted, force = request.settings_subject, request.body().get("mode"), request.flag("force")
    _check_mutable(request)
    return Answer(*await request.service.instance.submit(lambda state: set_mode(state, subject, wanted, force=force)))


@CALLS.call("DELETE", "/mode", parameters={"recursive": FLAG}, writes=True, role=Role.ADMIN)
@CALLS.call("DELETE", "/mode/{subject}", parameters={"recursive": FLAG}, writes=True, role=Role.ADMIN)
async def remove_mode(request: Request) -> Answer:
    """Remove a mode, so that the mode of the parent level applies."""
    subject, recursive = request.settings_subject, request.flag("recursive")
    _check_mutable(request)
    return Answer(
        *await request.service.instance.submit(lambda state: delete_mode(state, subject, recursive=recursive))
    )


def _check_mutable(request: Request) -> None:
    if not request.service.instance.settings.has_mutable_mode:
        raise OperationNotPermitted("Mode changes are not allowed: mode.mutability=false")
