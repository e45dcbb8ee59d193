"""The calls for subjects and their versions, and for compatibility."""

from __future__ import annotations

from typing import Final

from millbeck.client.schemas.log_records import Json
from millbeck.registry.deleting import delete_subject, delete_version
from millbeck.registry.errors import SchemaNotFound, SubjectNotFound
from millbeck.registry.rest.calls import FLAG, NUMBER, TEXT, Answer, Calls
from millbeck.registry.rest.requests import Request, version_members
from millbeck.registry.subjects import ALL_CONTEXTS, DEFAULT_CONTEXT, context_prefix, qualify
from millbeck.registry.tags import with_changes

CALLS: Final = Calls()
_PAGE: Final = {"offset": NUMBER, "limit": NUMBER}
_SCHEMA: Final = {
    "schema": "string",
    "schemaType": "string",
    "references": "array",
    "metadata": "object",
    "ruleSet": "object",
}


@CALLS.call("GET", "/subjects", parameters={"subjectPrefix": TEXT, "deleted": FLAG, "deletedOnly": FLAG, **_PAGE})
async def subjects(request: Request) -> Answer:
    """The names of all subjects."""
    state = request.service.state
    default = ALL_CONTEXTS if request.context == DEFAULT_CONTEXT else context_prefix(request.context)
    prefix = request.text("subjectPrefix", default)
    qualified = prefix if prefix.startswith((":*:", ":.")) else qualify(request.context, prefix)
    found = list(filter(request.can_read, request.service.listed_subjects(qualified)))
    if request.flag("deletedOnly"):
        found = [each for each in found if not state.versions(each)]
    elif not request.flag("deleted"):
        found = [each for each in found if state.versions(each)]
    return Answer(request.page(found))


@CALLS.call(
    "POST",
    "/subjects/{subject}",
    parameters={"normalize": FLAG, "format": TEXT, "deleted": FLAG},
    body=_SCHEMA,
)
async def lookup(request: Request) -> Answer:
    """The version of a subject that has the given schema."""
    deleted = request.flag("deleted")
    if not request.service.state.versions(request.subject, deleted=deleted):
        raise SubjectNotFound(f"Subject '{request.subject}' not found.")
    body = request.body()
    if body.get("schema") == "":
        raise SchemaNotFound("Schema not found")
    sent = request.schema(body)
    found = await request.service.lookup(request.subject, sent, normalize=request.flag("normalize"), deleted=deleted)
    if found is None:
        raise SchemaNotFound("Schema not found")
    return Answer(version_members(found, await request.service.text_for(sent, found, request.text("format"))))


@CALLS.call("DELETE", "/subjects/{subject}", parameters={"permanent": FLAG}, writes=True)
async def remove_subject(request: Request) -> Answer:
    """Delete a subject, by a soft or permanent delete."""
    subject, permanent = request.own_subject, request.flag("permanent")
    numbers, offset = await request.service.instance.submit(
        lambda state: delete_subject(state, subject, permanent=permanent)
    )
    return Answer(numbers, offset)


@CALLS.call(
    "GET", "/subjects/{subject}/metadata", parameters={"key": TEXT, "value": TEXT, "deleted": FLAG, "format": TEXT}
)
async def latest_with_metadata(request: Request) -> Answer:
    """The latest version whose metadata has these properties."""
    wanted = dict(zip(request.texts("key"), request.texts("value"), strict=False))
    subject, deleted = request.subject, request.flag("deleted")
    if not request.service.state.versions(subject, deleted=deleted):
        raise SubjectNotFound(f"Subject '{subject}' not found.")
    found = request.service.state.latest_with(subject, wanted, deleted=deleted)
    if found is None:
        raise SchemaNotFound("Schema not found")
    return Answer(version_members(found, await request.service.text(found, request.text("format"))))


@CALLS.call(
    "GET",
    "/subjects/{subject}/versions",
    parameters={"deleted": FLAG, "deletedOnly": FLAG, "deletedAsNegative": FLAG, **_PAGE},
)
async def versions(request: Request) -> Answer:
    """The numbers of a subject's versions."""
    only, negative = request.flag("deletedOnly"), request.flag("deletedAsNegative")
    found = request.service.state.versions(request.subject, deleted=only or negative or request.flag("deleted"))
    if not found:
        raise SubjectNotFound(f"Subject '{request.subject}' not found.")
    numbers = [
        -each.version if negative and each.is_deleted else each.version for each in found if each.is_deleted or not only
    ]
    return Answer(request.page(numbers))


@CALLS.call(
    "POST",
    "/subjects/{subject}/versions",
    parameters={"normalize": FLAG, "format": TEXT, "force": FLAG},
    body={**_SCHEMA, "id": "integer", "version": "integer"},
    writes=True,
)
async def register(request: Request) -> Answer:
    """Register a schema; equal schemas have the same id."""
    body = request.body()
    sent = request.schema(body)
    version, offset = await request.service.register(
        request.subject,
        sent,
        normalize=request.flag("normalize"),
        schema_id=request.optional_number(body, "id"),
        version=request.optional_number(body, "version"),
    )
    members = version_members(version, await request.service.text_for(sent, version, request.text("format")))
    return Answer({name: value for name, value in members.items() if name not in ("subject", "deleted")}, offset)


@CALLS.call(
    "GET", "/subjects/{subject}/versions/{version}", parameters={"format": TEXT, "deleted": FLAG, "findTags": TEXT}
)
async def version(request: Request) -> Answer:
    """One version of a subject."""
    found = request.service.state.version(request.subject, request.version, deleted=request.flag("deleted"))
    members = version_members(found, await request.service.text(found, request.text("format")))
    return Answer(request.with_tags(members, found))


@CALLS.call(
    "POST",
    "/subjects/{subject}/versions/{version}/tags",
    body={
        "newVersion": "integer",
        "tagsToAdd": "array",
        "tagsToRemove": "array",
        "metadata": "object",
        "ruleSet": "object",
        "rulesToMerge": "object",
        "rulesToRemove": "array",
    },
    writes=True,
)
async def change_tags(request: Request) -> Answer:
    """Register a version with other tags, metadata or rules."""
    body = request.body()
    base = request.service.state.version(request.subject, request.version)
    number = request.optional_number(body, "newVersion")
    registered, offset = await request.service.register(base.subject, with_changes(base.schema, body), version=number)
    return Answer(version_members(registered), offset)


@CALLS.call("GET", "/subjects/{subject}/versions/{version}/schema", parameters={"format": TEXT, "deleted": FLAG})
async def version_text(request: Request) -> Answer:
    """Only the text of one version."""
    found = request.service.state.version(request.subject, request.version, deleted=request.flag("deleted"))
    return Answer(text=await request.service.text(found, request.text("format")))


@CALLS.call("GET", "/subjects/{subject}/versions/{version}/referencedby", parameters={"deleted": FLAG, **_PAGE})
async def referenced_by(request: Request) -> Answer:
    """The ids of the schemas that refer to a version."""
    state = request.service.state
    found = state.version(request.subject, request.version, deleted=True)
    referrers = state.referrers.get((found.subject, found.version), {})
    ids = [
        state.subjects[subject][number].schema_id
        for subject, number in referrers
        if request.flag("deleted") or not state.subjects[subject][number].is_deleted
    ]
    return Answer(request.page(sorted(dict.fromkeys(ids))))


@CALLS.call("DELETE", "/subjects/{subject}/versions/{version}", parameters={"permanent": FLAG}, writes=True)
async def remove_version(request: Request) -> Answer:
    """Delete a version, by a soft or permanent delete."""
    subject, number, permanent = request.own_subject, request.version, request.flag("permanent")
    removed, offset = await request.service.instance.submit(
        lambda state: delete_version(state, subject, number, permanent=permanent)
    )
    return Answer(removed, offset)


@CALLS.call(
    "POST",
    "/compatibility/subjects/{subject}/versions",
    parameters={"normalize": FLAG, "verbose": FLAG},
    body=_SCHEMA,
)
async def compatible_with_all(request: Request) -> Answer:
    """Whether a schema could be registered."""
    return await _compatibility(request, None, all_versions=True)


@CALLS.call(
    "POST",
    "/compatibility/subjects/{subject}/versions/{version}",
    parameters={"normalize": FLAG, "verbose": FLAG},
    body=_SCHEMA,
)
async def compatible_with_one(request: Request) -> Answer:
    """Whether a schema is compatible with one version."""
    return await _compatibility(request, request.version, all_versions=False)


async def _compatibility(request: Request, number: int | None, *, all_versions: bool) -> Answer:
    messages = await request.service.compatibility_problems(
        request.subject,
        request.schema(request.body()),
        number,
        normalize=request.flag("normalize"),
        all_versions=all_versions,
    )
    answer: Json = {"is_compatible": not messages}
    if request.flag("verbose"):
        answer["messages"] = messages
    return Answer(answer)
