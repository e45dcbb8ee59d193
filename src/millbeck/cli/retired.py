"""Flags that Kafka's tools once had: whoever uses one is told what took its place, not left to wonder.

Settings that are gone are the server's to refuse, wherever they come from (`server.config.removed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def retired_option(*names: str, replacement: str) -> Callable[[F], F]:
    """Accepts a flag only to say what to use instead."""

    def refuse(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
        if value is not None:
            raise click.ClickException(f"{names[0]} is gone; {replacement}")

    return click.option(*names, hidden=True, expose_value=False, is_eager=True, callback=refuse, default=None)
