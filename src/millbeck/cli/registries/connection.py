"""The connection of a command to its registry, and the conversion of errors to messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any, Final

import click

from millbeck.client.schemas.errors import SchemaError
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.kernel.errors import InvalidConfig

DEFAULT_URL: Final = "http://127.0.0.1:8081"
MESSAGE_MAX: Final = 4000


def registry_command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--url`` and ``-X``, and pass a client as ``registry``."""

    @click.option(
        "--url",
        "-u",
        envvar="SCHEMA_REGISTRY_URL",
        default=DEFAULT_URL,
        show_default=True,
        metavar="URL,…",
        help="The URLs of the registry; can also be set by SCHEMA_REGISTRY_URL.",
    )
    @click.option(
        "-X",
        "--set",
        "properties",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the registry's client; can be repeated.",
    )
    def command(*arguments: Any, url: str, properties: tuple[str, ...], **named: Any) -> Any:
        with connected(url, properties) as registry:
            return function(*arguments, registry=registry, **named)

    return update_wrapper(command, function)


@contextmanager
def connected(url: str, properties: tuple[str, ...] = ()) -> Iterator[RegistryClient]:
    """A client of the registry within a block; its errors become `click.ClickException`."""
    from millbeck.cli.settings import settings_of_options

    try:
        settings = {"schema.registry.url": url, **settings_of_options(properties)}
        registry = RegistryClient(settings)
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
    try:
        yield registry
    except SchemaError as error:
        raise click.ClickException(str(error)[:MESSAGE_MAX]) from error
    finally:
        registry.close()
