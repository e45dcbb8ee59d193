"""Validators of jsonschema-rs for the documents of a schema; they never load other documents."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import jsonschema_rs

from millbeck.registry.formats.json_schema.documents import BASE, Documents, Place
from millbeck.registry.formats.json_schema.drafts import Draft

REGEX_BYTES_MAX: Final = 10 * 1024 * 1024
BACKTRACKS_MAX: Final = 100_000


class DraftValidator(NamedTuple):
    validator: Any
    draft: int

    def made(self, schema: Any, **options: Any) -> Any:
        """Create a validator; raises the errors of jsonschema-rs."""
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS_MAX, size_limit=REGEX_BYTES_MAX)
        return self.validator(schema, pattern_options=patterns, **options)


VALIDATORS: Final = {
    Draft.DRAFT_4: DraftValidator(jsonschema_rs.Draft4Validator, jsonschema_rs.Draft4),
    Draft.DRAFT_6: DraftValidator(jsonschema_rs.Draft6Validator, jsonschema_rs.Draft6),
    Draft.DRAFT_7: DraftValidator(jsonschema_rs.Draft7Validator, jsonschema_rs.Draft7),
    Draft.DRAFT_2019_09: DraftValidator(jsonschema_rs.Draft201909Validator, jsonschema_rs.Draft201909),
    Draft.DRAFT_2020_12: DraftValidator(jsonschema_rs.Draft202012Validator, jsonschema_rs.Draft202012),
}


def registry_of(documents: Documents) -> Any:
    return jsonschema_rs.Registry(documents.resources(), draft=VALIDATORS[documents.main.draft].draft)


def validator_at(documents: Documents, place: Place) -> Any:
    """Create a validator for one schema of the documents; raises the errors of jsonschema-rs."""
    return VALIDATORS[documents.main.draft].made(
        {"$ref": place.location}, registry=registry_of(documents), base_uri=f"{BASE}.one", offline=True
    )
