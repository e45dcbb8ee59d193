"""The declaration of a call: method, path, parameters and description. Routing and OpenAPI are derived from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from millbeck.registry.roles import Role

if TYPE_CHECKING:
    from millbeck.registry.rest.requests import Request

Handler = Callable[["Request"], Awaitable["Answer"]]

TEXT: Final = "string"
FLAG: Final = "boolean"
NUMBER: Final = "integer"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a call. ``offset`` is the offset of the write; ``text`` is sent instead of JSON."""

    content: Any = None
    offset: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    method: str
    path: str
    """The path, with variables in braces."""
    summary: str
    handler: Handler
    parameters: dict[str, str]
    """The query parameters and their types."""
    body: dict[str, str] | None
    """The members of the body and their types; None without a body."""
    writes: bool
    """Whether only the leader answers it."""
    role: Role
    """The role that the user must have for the subject."""

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/")) if self.path != "/" else ()

    @property
    def variables(self) -> list[str]:
        return [segment[1:-1] for segment in self.segments if segment.startswith("{")]


@dataclass(slots=True)
class Calls:
    """Calls declared by decorating their handlers."""

    declared: list[Call] = field(default_factory=list)

    def call(
        self,
        method: str,
        path: str,
        *,
        parameters: dict[str, str] | None = None,
        body: dict[str, str] | None = None,
        writes: bool = False,
        role: Role | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare the decorated handler; the first line of its docstring is the summary."""

        def declare(handler: Handler) -> Handler:
            summary = (handler.__doc__ or "").strip().partition("\n")[0]
            self.declared.append(
                Call(
                    method=method,
                    path=path,
                    summary=summary,
                    handler=handler,
                    parameters=parameters or {},
                    body=body,
                    writes=writes,
                    role=role or (Role.WRITE if writes else Role.READ),
                )
            )
            return handler

        return declare
