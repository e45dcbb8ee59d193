"""What somebody may have meant who mistyped a name. difflib is loaded when there is something to guess, not before."""

from __future__ import annotations

from collections.abc import Iterable

CUTOFF = 0.6
KNOWN_MAX = 10_000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like a mistyped one, if any does."""
    from difflib import get_close_matches
    from itertools import islice

    found = get_close_matches(name[:100], list(islice(known, KNOWN_MAX)), n=1, cutoff=CUTOFF)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """To be put behind a message: ``, did you mean orders?``, or nothing."""
    found = nearest(name, known)
    return f", did you mean {found}?" if found is not None else ""


def settings_hint(names: Iterable[str], scope: str) -> str:
    """Guesses for those names that are no settings of a scope: ``topic``, ``broker`` or ``group``."""
    known = _settings_of(scope)
    guesses = [(name, nearest(name, known)) for name in names if name not in known]
    return "".join(f"; did you mean {found} instead of {name}?" for name, found in guesses if found is not None)


def _settings_of(scope: str) -> list[str]:
    if scope == "topic":
        from millbeck.storage.config import TOPIC_OPTIONS

        return list(TOPIC_OPTIONS.by_name)
    from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS

    return list((GROUP_OPTIONS if scope == "group" else BROKER_OPTIONS).by_name)
