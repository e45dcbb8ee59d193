"""How a command reaches a cluster: the options that say where, and one place where failures become messages."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.retired import retired_option

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.cluster import Cluster
    from millbeck.kernel.environment import Environment

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
CONNECT_SECONDS_MAX: Final = 10.0
TOPIC_SECONDS_MAX: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster a command is about, and client settings from ``--command-config`` and ``--command-property``."""

    bootstrap: str
    settings: dict[str, str] = field(default_factory=dict)

    def client_settings(self, **others: str) -> dict[str, str]:
        """With ``others`` (dots as underscores) below what the user said."""
        named = {name.replace("_", "."): value for name, value in others.items()}
        return {"client.id": "millbeck-cli", **named, **self.settings, "bootstrap.servers": self.bootstrap}


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options and passes a `Target` as ``target``."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--brokers",
        envvar="MILLBECK_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT,…",
        help="Brokers to begin with.",
    )
    @click.option(
        "--command-config",
        "--producer.config",
        "--consumer.config",
        "command_config",
        metavar="FILE",
        help="Client settings, as a .properties file.",
    )
    @click.option(
        "-X",
        "--command-property",
        "--producer-property",
        "--consumer-property",
        "command_property",
        multiple=True,
        metavar="KEY=VALUE",
        help="A client setting; can be repeated.",
    )
    @retired_option("--zookeeper", replacement="use --bootstrap-server with a broker's host:port")
    @functools.wraps(function)
    def with_target(
        *, bootstrap_server: str, command_config: str | None, command_property: tuple[str, ...], **others: Any
    ) -> None:
        function(target=target_of(bootstrap_server, command_config, command_property), **others)

    return with_target


def target_of(bootstrap: str, config_path: str | None, properties: tuple[str, ...]) -> Target:
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.kernel.properties import parse_properties, settings_of_flags

    settings: dict[str, str] = {}
    if config_path is not None:
        try:
            with open(config_path, encoding="utf-8") as file:
                settings |= parse_properties(file.read())
        except (OSError, UnicodeDecodeError, InvalidConfig) as error:
            raise click.ClickException(f"client settings: {file_problem(config_path, error)}") from error
    try:
        settings |= settings_of_flags(properties)
    except InvalidConfig as error:
        raise click.ClickException(f"client settings: {error}") from error
    named = settings.pop("bootstrap.servers", None)
    return Target(bootstrap=bootstrap if named is None or bootstrap != DEFAULT_BOOTSTRAP else named, settings=settings)


def run(work: Callable[[Environment], Awaitable[None]]) -> None:
    """Run a command's asynchronous part on the real machine. SIGTERM ends it as Ctrl-C does: ``KeyboardInterrupt``."""
    import asyncio
    import signal

    from millbeck.host import real_environment

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        await work(real_environment())

    try:
        with reported():
            asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def run_admin(target: Target, work: Callable[[Admin], Awaitable[None]]) -> None:
    """Run administrative calls."""

    async def main(environment: Environment) -> None:
        from millbeck.client.admin import Admin

        async with Admin(environment, target.client_settings()) as admin:
            await check_reachable(admin.cluster, target)
            await work(admin)

    run(main)


async def check_reachable(cluster: Cluster, target: Target) -> None:
    """Fail soon when nobody is there, instead of trying for as long as a program would; later waits are told of."""
    from millbeck.cli.waiting import tell_of_outages
    from millbeck.client.errors import NoBrokerReachable
    from millbeck.client.retry import Deadline

    cluster.spawn(tell_of_outages(cluster))
    try:
        await cluster.any_connection(Deadline(CONNECT_SECONDS_MAX))
    except NoBrokerReachable as error:
        raise click.ClickException(
            f"no broker reached at {target.bootstrap}: {error}; name one with --bootstrap-server or MILLBECK_BOOTSTRAP"
        ) from error


async def check_topic(cluster: Cluster, name: str) -> None:
    """Fail soon when there is no such topic and brokers do not make one; a program would go on asking for a minute."""
    from millbeck.kernel.errors import UnknownTopicOrPartition

    try:
        await cluster.topic(name, timeout_s=TOPIC_SECONDS_MAX)
    except UnknownTopicOrPartition as error:
        raise click.ClickException(
            f"there is no topic {name}, and the brokers do not make one by themselves: millbeck topic create {name}"
        ) from error


@contextmanager
def reported() -> Iterator[None]:
    """What brokers and the machine refuse becomes the command's error message."""
    from millbeck.kernel.errors import ApiError

    try:
        yield
    except ApiError as error:
        raise click.ClickException(error_text(error)) from error
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise click.ClickException(str(error)) from error


def file_problem(path: str, error: Exception) -> str:
    """What is wrong with a file that was named on the command line."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: not a text file: byte {error.start} is not UTF-8"
    return f"{path}: {error.strerror}" if isinstance(error, OSError) and error.strerror else f"{path}: {error}"


def error_text(error: Exception) -> str:
    """A message with Kafka's name for the error, which is what one searches for."""
    return f"{error} ({getattr(error, 'kafka_name', type(error).__name__)})"
