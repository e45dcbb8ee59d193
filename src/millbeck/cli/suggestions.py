"""Help for mistyped names and for flags that Kafka has removed. difflib is imported only when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

CUTOFF = 0.6
KNOWN_MAX = 10_000


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to a mistyped one, if any is similar enough."""
    from difflib import get_close_matches
    from itertools import islice

    found = get_close_matches(name[:100], list(islice(known, KNOWN_MAX)), n=1, cutoff=CUTOFF)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suffix for a message: ``, did you mean orders?``, or an empty string."""
    found = nearest(name, known)
    return f", did you mean {found}?" if found is not None else ""


def settings_hint(names: Iterable[str], scope: str) -> str:
    """Suggestions for unknown settings of a scope: ``topic``, ``broker`` or ``group``.

    Settings that Kafka has removed get no suggestion, because the broker's error names their replacement.
    """
    from millbeck.server.config.removed import replacement_of

    known = _settings_of(scope)
    unknown = [name for name in names if name not in known and replacement_of(name) is None]
    guesses = [(name, nearest(name, known)) for name in unknown]
    return "".join(f"; did you mean {found} instead of {name}?" for name, found in guesses if found is not None)


def _settings_of(scope: str) -> list[str]:
    if scope == "topic":
        from millbeck.storage.config import TOPIC_OPTIONS

        return list(TOPIC_OPTIONS.by_name)
    from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS

    return list((GROUP_OPTIONS if scope == "group" else BROKER_OPTIONS).by_name)


F = TypeVar("F", bound=Callable[..., Any])


def retired_option(*names: str, replacement: str) -> Callable[[F], F]:
    """Adds an option for a removed flag, which fails with a message that names the replacement."""

    def refuse(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
        if value is not None:
            raise click.ClickException(f"{names[0]} was removed; {replacement}")

    return click.option(*names, hidden=True, expose_value=False, is_eager=True, callback=refuse, default=None)
