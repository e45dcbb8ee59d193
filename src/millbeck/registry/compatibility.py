"""Compatibility levels: they determine which earlier schemas a new schema must be compatible with, and in which
direction."""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.registry.formats.interface import NEW_READS_OLD, OLD_READS_NEW, Incompatibility, ParsedSchema, Policy

BACKWARD_LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
FORWARD_LEVELS = ("FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")


def problems_between(
    new: ParsedSchema, old: ParsedSchema, level: str, policy: Policy = Policy.STRICT
) -> list[Incompatibility]:
    """The reasons why the level does not allow the new schema together with the old one; both have the same format."""
    problems: list[Incompatibility] = []
    if level in BACKWARD_LEVELS:
        problems += new.problems_reading(old, NEW_READS_OLD, policy)
    if level in FORWARD_LEVELS:
        problems += old.problems_reading(new, OLD_READS_NEW, policy)
    return problems


def messages_of(problems: Sequence[Incompatibility], *, version: int, old_text: str, level: str) -> list[str]:
    """The messages of a verbose answer: each problem, then the version it was compared with."""
    if not problems:
        return []
    return [
        *map(str, problems),
        f"{{oldSchemaVersion: {version}}}",
        f"{{oldSchema: '{old_text}'}}",
        f"{{compatibility: '{level}'}}",
    ]
