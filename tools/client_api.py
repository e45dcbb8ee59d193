"""The reference of the Python client, from its signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

LEAD = (
    "The names of `millbeck.client`, then those of `millbeck.client.patterns` and the errors that the client itself "
    "raises. `millbeck.client.sync` has `Producer`, `Consumer`, `ShareConsumer` and `Admin` with the same methods, "
    "without `await`. [The guide](../client.md) has examples."
)


def client_api(note: str) -> Iterator[str]:
    import millbeck.client
    import millbeck.client.errors
    import millbeck.client.patterns
    from millbeck.kernel.errors import ApiError

    yield from ("# The Python client: reference", "", note, "", LEAD)
    for module in (millbeck.client, millbeck.client.patterns):
        yield from ("", f"## {module.__name__}", "")
        for name in sorted(module.__all__):
            yield from _entry(name, getattr(module, name))
    yield from ("", "## millbeck.client.errors", "", "| error | | may be retried |", "|---|---|---|")
    for name, found in sorted(vars(millbeck.client.errors).items()):
        if (
            inspect.isclass(found)
            and issubclass(found, ApiError)
            and found.__module__ == millbeck.client.errors.__name__
        ):
            about = " ".join(inspect.cleandoc(found.__doc__ or "").split()).replace("``", "`")
            yield f"| `{name}` | {about} | {'yes' if found.retriable else 'no'} |"


def _entry(name: str, found: Any) -> Iterator[str]:
    yield from ("", f"### {name}", "")
    if not inspect.isclass(found):
        if inspect.isfunction(found):
            yield from _signed(name, found)
        else:
            yield f"`{found}`"
        return
    yield from _about(found)
    members = getattr(found, "__members__", None)
    if members:
        yield from ("", f"Values: {', '.join(f'`{member}`' for member in members)}.")
        return
    fields = getattr(found, "_fields", None)
    if fields:
        yield from ("", f"Fields: {', '.join(f'`{field}`' for field in fields)}.")
    elif "__init__" in vars(found) and not getattr(found, "_is_protocol", False):
        yield from ("", *_signed(name, found.__init__))
    for method, value in _members(found):
        if isinstance(value, property):
            yield from ("", f"**`{method}`** `{_result_of(value.fget)}`", "", *_about(value))
        else:
            yield from ("", *_signed(method, value))


def _members(found: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(found).items():
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
            yield name, plain


def _signed(name: str, function: Callable[..., Any]) -> Iterator[str]:
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    shown: list[str] = []
    has_star = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not has_star:
            shown.append("*")
            has_star = True
        prefix = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        has_star = has_star or prefix == "*"
        default = "" if each.default is each.empty else f" = {_shown(each.default)}"
        shown.append(f"{prefix}{each.name}{_typed(each.annotation)}{default}")
    awaits = "await " if inspect.iscoroutinefunction(function) else ""
    result = (
        "" if signature.return_annotation in (signature.empty, "None") else f" -> {_text(signature.return_annotation)}"
    )
    yield f"**`{awaits}{name}({', '.join(shown)}){result}`**"
    about = list(_about(function))
    if any(about):
        yield from ("", *about)


def _result_of(function: Callable[..., Any] | None) -> str:
    return "" if function is None else f"-> {_text(inspect.signature(function).return_annotation)}"


def _typed(annotation: Any) -> str:
    return "" if annotation is inspect.Parameter.empty else f": {_text(annotation)}"


def _text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _shown(default: Any) -> str:
    """A default as it is written; one whose text has an address is an object of the module."""
    text = repr(default)
    return "…" if " at 0x" in text else text


def _about(found: Any) -> Iterator[str]:
    """A docstring as Markdown; indented examples are code already."""
    own = found.__doc__ if not inspect.isclass(found) or "__doc__" in vars(found) else None
    text = inspect.cleandoc(own or "")
    if text and not text.startswith(("Alias for field", "tuple(", f"{getattr(found, '__name__', '')}(")):
        yield from text.replace("``", "`").splitlines()
