"""One request: parsing and validation of its variables, parameters and body."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qs

from millbeck.client.schemas.log_records import Json, UnreadableRecord
from millbeck.registry.access import EVERYBODY, User
from millbeck.registry.errors import Forbidden, InvalidSchema, InvalidVersion, NoSuchPath, UnreadableBody
from millbeck.registry.roles import Role
from millbeck.registry.schema import AVRO, Schema, json_text, references_of
from millbeck.registry.service import SchemaService
from millbeck.registry.settings import check_rule_set
from millbeck.registry.state import Version
from millbeck.registry.subjects import DEFAULT_CONTEXT, context_prefix, qualify
from millbeck.registry.tags import tagged_parts

VERSION_MAX: Final = 2**31 - 1
LATEST: Final = ("latest", "-1")
_PARAMETERS_MAX: Final = 100
_DIGITS_MAX: Final = 19


@dataclass(slots=True)
class Request:
    service: SchemaService
    variables: dict[str, str]
    query: str = ""
    raw_body: bytes = b""
    context: str = DEFAULT_CONTEXT
    """The context of a path that begins with /contexts/."""
    user: User = EVERYBODY
    _parameters: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            self._parameters = parse_qs(self.query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX)
        except ValueError:
            raise UnreadableBody(f"the query has more than {_PARAMETERS_MAX} parameters") from None

    # path

    @property
    def subject(self) -> str:
        """The qualified name of the subject in the path, with aliases resolved."""
        return self.service.state.aliased(self.own_subject)

    @property
    def own_subject(self) -> str:
        """The qualified name of the subject in the path."""
        return qualify(self.context, self.variables["subject"])

    @property
    def settings_subject(self) -> str | None:
        """The subject or context of the settings in the path; None for the global settings."""
        name = self.variables.get("subject")
        if name is not None:
            return qualify(self.context, name)
        return None if self.context == DEFAULT_CONTEXT else context_prefix(self.context)

    @property
    def version(self) -> int | None:
        """The version in the path; None means the latest."""
        text = self.variables["version"]
        if text in LATEST:
            return None
        if not text.isascii() or not text.isdecimal() or not 0 < int(text[:20]) <= VERSION_MAX:
            raise InvalidVersion(
                f"The specified version '{text[:100]}' is not a valid version id. Allowed values are between "
                '[1, 2^31-1] and the string "latest"'
            )
        return int(text)

    def path_number(self, name: str) -> int:
        """A number in the path; raises `NoSuchPath` if it is not a number."""
        found = self.variables[name]
        if not _is_number(found):
            raise NoSuchPath(f"HTTP 404 Not Found: {name} must be a number, not {found[:100]!r}")
        return int(found)

    # permissions

    def can_read(self, subject: str) -> bool:
        return self.user.may(Role.READ, subject)

    def require(self, role: Role, subject: str) -> None:
        """Raise `Forbidden` if the user does not have the role for the subject; an empty name means everything."""
        if not self.user.may(role, subject):
            what = f"subject '{subject}'" if subject else "the whole registry"
            raise Forbidden(
                f"Forbidden: user {self.user.name} needs the role {role.name.lower()} for {what} (millbeck.users.file)"
            )

    # query

    def text(self, name: str, default: str = "") -> str:
        return self._parameters.get(name, [default])[-1]

    def texts(self, name: str) -> list[str]:
        return self._parameters.get(name, [])

    def number(self, name: str, default: int) -> int:
        """A number in the query; raises `UnreadableBody` if it is not a number."""
        found = self.text(name, str(default))
        if not _is_number(found):
            raise UnreadableBody(f"{name} must be a number, not {found[:100]!r}")
        return int(found)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() == "true"

    def page(self, items: list[Any]) -> list[Any]:
        """The page of a list that ``offset`` and ``limit`` select."""
        offset, limit = max(0, self.number("offset", 0)), self.number("limit", -1)
        return items[offset:] if limit <= 0 else items[offset : offset + limit]

    def with_tags(self, members: Json, version: Version) -> Json:
        """Add the tagged parts that ``findTags`` asks for."""
        wanted = [tag for text in self.texts("findTags") for tag in text.split(",") if tag]
        if wanted:
            members["schemaTags"] = tagged_parts(version.schema, wanted)
        return members

    # body

    def body(self) -> Json:
        try:
            found = json.loads(self.raw_body)
        except (ValueError, RecursionError) as error:
            raise UnreadableBody(f"the body is not JSON: {str(error)[:200]}") from None
        if not isinstance(found, dict):
            raise UnreadableBody("the body must be a JSON object")
        return found

    def schema(self, body: Json) -> Schema:
        """The schema in a body; a reference to version -1 means the latest version."""
        text, schema_type = body.get("schema"), body.get("schemaType") or AVRO
        if not isinstance(text, str) or not text.strip():
            raise InvalidSchema("Empty schema: the body needs a member schema, whose value is the schema as a string")
        if not isinstance(schema_type, str):
            raise UnreadableBody("schemaType must be a string")
        try:
            references = references_of(self._numbered(body.get("references")))
            for each in references:
                self.require(Role.READ, qualify(self.context, each.subject))
            metadata, rules = json_text(body.get("metadata")), body.get("ruleSet")
            if rules is not None:
                check_rule_set(rules)
            return Schema(schema_type, text, references, metadata, json_text(rules))
        except UnreadableRecord as error:
            raise UnreadableBody(str(error)) from None

    def _numbered(self, references: Any) -> Any:
        if not isinstance(references, list):
            return references
        return [self._latest(each) if _is_to_latest(each) else each for each in references]

    def _latest(self, reference: Json) -> Json:
        subject = qualify(self.context, str(reference.get("subject")))
        return {**reference, "version": self.service.state.version(subject, None).version}

    def optional_number(self, body: Json, name: str) -> int | None:
        found = body.get(name)
        if found is None or found in (-1, 0):
            return None
        if not isinstance(found, int) or isinstance(found, bool):
            raise UnreadableBody(f"{name} must be a number")
        return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= _DIGITS_MAX


def _is_to_latest(reference: Any) -> bool:
    return isinstance(reference, dict) and reference.get("version") == -1


def version_members(version: Version, text: str | None = None) -> Json:
    """The members of a version in answers, without those that have their default values."""
    members: Json = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    members.update(guid=version.guid, **_members(version, text))
    if version.is_deleted:
        members["deleted"] = True
    return members


def schema_members(version: Version, text: str | None = None) -> Json:
    """The members of a schema in answers to requests by id or guid."""
    return {**_members(version, text), "guid": version.guid}


def _members(version: Version, text: str | None) -> Json:
    schema = version.schema if text is None else replace(version.schema, text=text)
    return schema.members()
