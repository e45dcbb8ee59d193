"""The calls for schemas by their ids, and for contexts."""

from __future__ import annotations

import asyncio
from typing import Final

from millbeck.client.schemas.log_records import encode_json
from millbeck.registry.deleting import delete_context
from millbeck.registry.errors import Forbidden, SchemaNotFound
from millbeck.registry.rest.calls import FLAG, NUMBER, TEXT, Answer, Calls
from millbeck.registry.rest.requests import Request, schema_members, version_members
from millbeck.registry.roles import Role
from millbeck.registry.state import Version
from millbeck.registry.subjects import context_of, normal_context, qualify, split

CALLS: Final = Calls()
_TURN_VERSIONS: Final = 200
_PAGE: Final = {"offset": NUMBER, "limit": NUMBER}


@CALLS.call("GET", "/")
async def root(request: Request) -> Answer:
    """Check that the registry answers; returns an empty object."""
    return Answer({})


@CALLS.call("POST", "/")
async def root_posted(request: Request) -> Answer:
    """Check that the registry answers; returns an empty object."""
    return Answer({})


@CALLS.call("GET", "/schemas/types")
async def schema_types(request: Request) -> Answer:
    """The schema types that this registry supports."""
    return Answer(list(request.service.formats))


@CALLS.call(
    "GET",
    "/schemas",
    parameters={"subjectPrefix": TEXT, "aliases": FLAG, "deleted": FLAG, "latestOnly": FLAG, "ruleType": TEXT, **_PAGE},
)
async def schemas(request: Request) -> Answer:
    """All schemas, by subject and version."""
    found: list[Version] = []
    prefix = _prefix(request, "")
    names = request.service.listed_subjects(prefix, aliases=request.flag("aliases"))
    for subject in filter(request.can_read, names):
        versions = request.service.state.versions(subject, deleted=request.flag("deleted"))
        found += versions[-1:] if request.flag("latestOnly") else versions
    rule_type = request.text("ruleType")
    if rule_type:
        found = [each for each in found if f'"type":"{rule_type}"' in (each.schema.rule_set or "")]
    return Answer(text=await _listed(request.page(found)))


async def _listed(versions: list[Version]) -> str:
    """The JSON of a list of versions, which may be long, so it is made in turns with other requests."""
    parts: list[str] = []
    for start in range(0, len(versions), _TURN_VERSIONS):
        turn = versions[start : start + _TURN_VERSIONS]
        parts += [encode_json(version_members(each)).decode("utf-8", "surrogatepass") for each in turn]
        await asyncio.sleep(0)
    return f"[{','.join(parts)}]"


@CALLS.call(
    "GET",
    "/schemas/ids/{id}",
    parameters={"subject": TEXT, "format": TEXT, "referenceFormat": TEXT, "findTags": TEXT, "fetchMaxId": FLAG},
)
async def schema_by_id(request: Request) -> Answer:
    """The schema with an id."""
    version = _by_id(request)
    members = schema_members(version, await request.service.text(version, request.text("format")))
    request.with_tags(members, version)
    if request.flag("fetchMaxId"):
        members["maxId"] = request.service.state.context(context_of(version.subject)).id_max
    return Answer(members)


@CALLS.call("GET", "/schemas/ids/{id}/schema", parameters={"subject": TEXT, "format": TEXT})
async def text_by_id(request: Request) -> Answer:
    """Only the text of the schema with an id."""
    return Answer(text=await request.service.text(_by_id(request), request.text("format")))


@CALLS.call("GET", "/schemas/ids/{id}/subjects", parameters={"subject": TEXT, "deleted": FLAG, **_PAGE})
async def subjects_of_id(request: Request) -> Answer:
    """The subjects that have the schema with an id."""
    return Answer(request.page(list(dict.fromkeys(each.subject for each in _holders(request)))))


@CALLS.call("GET", "/schemas/ids/{id}/versions", parameters={"subject": TEXT, "deleted": FLAG, **_PAGE})
async def versions_of_id(request: Request) -> Answer:
    """The versions that have the schema with an id."""
    found = [{"subject": each.subject, "version": each.version} for each in _holders(request)]
    return Answer(request.page(found))


@CALLS.call("GET", "/schemas/guids/{guid}", parameters={"format": TEXT})
async def schema_by_guid(request: Request) -> Answer:
    """The schema with a guid."""
    version = _by_guid(request)[0]
    return Answer(schema_members(version, await request.service.text(version, request.text("format"))))


@CALLS.call("GET", "/schemas/guids/{guid}/ids")
async def ids_of_guid(request: Request) -> Answer:
    """The ids of the schema with a guid, by context."""
    found = {(context_of(each.subject), each.schema_id): None for each in _by_guid(request)}
    return Answer([{"context": context, "id": schema_id} for context, schema_id in found])


@CALLS.call("GET", "/contexts", parameters=_PAGE)
async def contexts(request: Request) -> Answer:
    """The names of all contexts."""
    found = [name for name, each in sorted(request.service.state.contexts.items()) if each.is_declared]
    return Answer(request.page(found))


@CALLS.call("DELETE", "/contexts/{context}", writes=True, role=Role.ADMIN)
async def remove_context(request: Request) -> Answer:
    """Delete an empty context."""
    name = normal_context(request.variables["context"])
    _, offset = await request.service.instance.submit(lambda state: delete_context(state, name))
    return Answer(text="", offset=offset)


@CALLS.call("GET", "/v1/metadata/id")
async def cluster_id(request: Request) -> Answer:
    """The identity of this registry."""
    group = request.service.instance.settings.election.group_id
    return Answer({"scope": {"path": [], "clusters": {"schema-registry-cluster": group}}, "id": ""})


@CALLS.call("GET", "/v1/metadata/version")
async def server_version(request: Request) -> Answer:
    """The version of this registry."""
    from millbeck import __version__

    return Answer({"version": f"millbeck {__version__}", "commitId": ""})


def _prefix(request: Request, default: str) -> str:
    return qualify(request.context, request.text("subjectPrefix", default))


def _by_id(request: Request) -> Version:
    schema_id = request.path_number("id")
    found = request.service.state.by_id(_context(request), schema_id)
    if found is None:
        raise SchemaNotFound(f"Schema {schema_id} not found")
    return _readable(request, [found, *request.service.state.context(_context(request)).holders[schema_id]])[0]


def _readable(request: Request, versions: list[Version]) -> list[Version]:
    """The versions that the user may read; raises `Forbidden` if there is none."""
    found = [each for each in versions if request.can_read(each.subject)]
    if not found:
        raise Forbidden("Forbidden: the schema is in no subject that you may read")
    return found


def _context(request: Request) -> str:
    """The context of the ids: that of the parameter ``subject``, or of the path."""
    subject = request.text("subject")
    return context_of(qualify(request.context, subject)) if subject else request.context


def _holders(request: Request) -> list[Version]:
    """The versions with the id, of one subject if the parameter ``subject`` names one."""
    schema_id, subject = request.path_number("id"), request.text("subject")
    _by_id(request)
    holders = request.service.state.context(_context(request)).holders[schema_id]
    wanted = qualify(request.context, subject) if subject else ""
    is_subject = bool(wanted) and bool(split(wanted)[1])
    return [
        each
        for each in holders
        if (request.flag("deleted") or not each.is_deleted)
        and (each.subject == wanted or not is_subject)
        and request.can_read(each.subject)
    ]


def _by_guid(request: Request) -> list[Version]:
    state = request.service.state
    found = state.by_guid(request.variables["guid"])
    if not found:
        raise SchemaNotFound(f"Schema {request.variables['guid'][:100]} not found")
    return _readable(request, found)
