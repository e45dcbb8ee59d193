"""Names of subjects: plain ones are in the default context, ``:.lab:orders-value`` is in the context ``.lab``.

Ids and versions belong to a context, so two contexts are like two registries. This package always uses a subject's
qualified name: the plain name in the default context, and the name with the context prefix in any other.
"""

from __future__ import annotations

from typing import Final

from millbeck.registry.errors import InvalidSubject

DEFAULT_CONTEXT: Final = "."
ALL_CONTEXTS: Final = ":*:"
GLOBAL_CONTEXT: Final = ".__GLOBAL"
"""The context whose settings and mode apply to all contexts that have none; it has no subjects."""
_NAME_LENGTH_MAX: Final = 8192


def split(subject: str) -> tuple[str, str]:
    """The context and the plain name of a qualified name."""
    if subject.startswith(":."):
        context, separator, name = subject[1:].partition(":")
        if separator:
            return context, name
    return DEFAULT_CONTEXT, subject


def context_of(subject: str) -> str:
    return split(subject)[0]


def qualify(context: str, name: str) -> str:
    """The qualified name of a subject in a context; a name with a context prefix keeps its own context."""
    if name.startswith(":."):
        own, plain = split(name)
        return plain if own == DEFAULT_CONTEXT else name
    return name if context == DEFAULT_CONTEXT else f":{context}:{name}"


def context_prefix(context: str) -> str:
    """The qualified name under which settings of a whole context are kept."""
    return f":{context}:"


def normal_context(name: str) -> str:
    """The stored name of a context given as ``lab``, ``.lab`` or ``:.lab:``."""
    plain = name.strip(":")
    return plain if plain.startswith(".") else f".{plain}"


def check(subject: str) -> str:
    """Return the qualified name if it can be the name of a subject."""
    context, name = split(subject)
    printable = all(character.isprintable() for character in subject)
    is_reserved = name in ("__GLOBAL", "__EMPTY") or context == GLOBAL_CONTEXT
    if not name.strip() or not printable or len(subject) > _NAME_LENGTH_MAX or is_reserved:
        raise InvalidSubject(f"The specified subject '{subject[:200]}' is not a valid subject.")
    return qualify(context, name)
