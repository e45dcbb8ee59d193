"""Connection options shared by commands, and the conversion of failures to messages."""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.completed_types import FILE, PROFILE
from millbeck.cli.suggestions import retired_option

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.cluster import Cluster
    from millbeck.kernel.environment import Environment

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
_CONNECTION_PARAMETERS: Final = ("bootstrap_server", "profile", "command_config", "command_property")
_ASK_ACLS: Final = "millbeck acl explain says which ACL is missing"
REMEDIES: Final = {
    "BROKER_ID_NOT_REGISTERED": "millbeck cluster list-endpoints --include-fenced-brokers shows the ids",
    "CLUSTER_AUTHORIZATION_FAILED": _ASK_ACLS,
    "GROUP_AUTHORIZATION_FAILED": _ASK_ACLS,
    "GROUP_ID_NOT_FOUND": "millbeck group list and share list show the groups",
    "INVALID_PARTITIONS": "partitions can only be added; for fewer create a new topic",
    "INVALID_REPLICATION_FACTOR": "start more brokers, or give a lower --replication-factor",
    "INVALID_UPDATE_VERSION": "millbeck feature describe shows the supported levels",
    "NON_EMPTY_GROUP": "stop its members first",
    "RESOURCE_NOT_FOUND": "millbeck user list shows the users",
    "SECURITY_DISABLED": (
        "set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer on all nodes"
    ),
    "TOPIC_ALREADY_EXISTS": "change it with millbeck topic alter, or use create --if-not-exists",
    "TOPIC_AUTHORIZATION_FAILED": _ASK_ACLS,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _ASK_ACLS,
    "TRANSACTIONAL_ID_NOT_FOUND": "millbeck txn list shows the transactional ids",
    "UNKNOWN_TOPIC_OR_PARTITION": "millbeck topic describe shows the topics and their partitions",
}
"""Advice for errors of brokers, by Kafka's name of the error."""
CONNECT_SECONDS_MAX: Final = 10.0
TOPIC_SECONDS_MAX: Final = 5.0
CREATION_SECONDS_MAX: Final = 2.0
"""How long to wait for a topic that brokers may be creating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster to connect to, and client settings of the profile, ``--command-config`` and ``-X``."""

    bootstrap: str
    profile: str | None = None
    """The name of the profile in use."""
    settings: dict[str, str] = field(default_factory=dict)

    def client_settings(self, **others: str) -> dict[str, str]:
        """The client settings; ``others`` (underscores for dots) are defaults that the user's settings override."""
        named = {name.replace("_", "."): value for name, value in others.items()}
        return {"client.id": "millbeck-cli", **named, **self.settings, "bootstrap.servers": self.bootstrap}


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the connection options and passes a `Target` as ``target``."""

    @click.option(
        "-b",
        "--bootstrap-server",
        "--brokers",
        envvar="MILLBECK_BOOTSTRAP",
        show_envvar=True,
        metavar="HOST:PORT,…",
        help=f"Bootstrap brokers.  [default: those of the current profile, or {DEFAULT_BOOTSTRAP}]",
    )
    @click.option(
        "--profile",
        envvar="MILLBECK_PROFILE",
        show_envvar=True,
        metavar="NAME",
        type=PROFILE,
        help="Use the brokers and settings of this profile (see millbeck profile).",
    )
    @click.option(
        "--command-config",
        "--producer.config",
        "--consumer.config",
        "command_config",
        metavar="FILE",
        type=FILE,
        help="A .properties file of client settings.",
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
    @click.pass_context
    @functools.wraps(function)
    def with_target(ctx: click.Context, /, **parameters: Any) -> None:
        for name in _CONNECTION_PARAMETERS:
            del parameters[name]
        function(target=target_of_context(ctx), **parameters)

    return with_target


def target_of_context(ctx: click.Context) -> Target:
    """The target of the parameters of `target_options`."""
    given = ctx.params
    settings = client_settings_of(given["command_config"], given["command_property"] or ())
    is_flag = ctx.get_parameter_source("bootstrap_server") is click.core.ParameterSource.COMMANDLINE
    return target_of(given["bootstrap_server"], settings, profile=given["profile"], overrides_profile=is_flag)


def client_settings_of(config_path: str | None, properties: tuple[str, ...]) -> dict[str, str]:
    """The settings of a .properties file and of ``key=value`` options, which override the file's."""
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.kernel.properties import settings_of_flags

    settings: dict[str, str] = {}
    if config_path is not None:
        from millbeck.cli.settings import read_properties

        try:
            settings |= read_properties(config_path, os.environ)
        except (OSError, UnicodeDecodeError, InvalidConfig) as error:
            raise click.ClickException(f"client settings: {file_problem(config_path, error)}") from error
    try:
        return settings | settings_of_flags(properties)
    except InvalidConfig as error:
        raise click.ClickException(f"client settings: {error}") from error


def target_of(
    bootstrap: str | None, settings: dict[str, str], *, profile: str | None = None, overrides_profile: bool = False
) -> Target:
    """The target of a command. The bootstrap servers come from, in order of precedence: ``bootstrap``, the settings,
    the profile, the default.

    An explicitly chosen profile precedes a ``bootstrap`` of the environment (not ``overrides_profile``). The current
    profile is used only if no brokers are given, because its passwords must not be sent to other brokers.
    """
    from millbeck.cli.profiles import ProfileStore

    settings = dict(settings)
    in_settings = settings.pop(BOOTSTRAP_SERVERS, None)
    store = ProfileStore.of_user()
    used = profile or (store.current() if bootstrap is None and in_settings is None else None)
    kept = store.load(used) if used is not None else {}
    in_profile = kept.pop(BOOTSTRAP_SERVERS, None)
    if profile is not None and not overrides_profile:
        bootstrap = None
    chosen = bootstrap or in_settings or in_profile or DEFAULT_BOOTSTRAP
    return Target(bootstrap=chosen, profile=used, settings=kept | settings)


def run(work: Callable[[Environment], Awaitable[None]]) -> None:
    """Run a command's coroutine in a real environment. SIGTERM acts like Ctrl-C: ``KeyboardInterrupt``."""
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
    """Run ``work`` with an admin client."""

    async def main(environment: Environment) -> None:
        from millbeck.client.admin import Admin

        async with Admin(target.client_settings(), environment=environment) as admin:
            await check_reachable(admin.cluster, target)
            await work(admin)

    run(main)


async def check_reachable(cluster: Cluster, target: Target) -> None:
    """Fail fast if no broker is reachable, without a client's usual retries; later outages are only reported."""
    from millbeck.cli.outage_messages import report_outages
    from millbeck.client.errors import NoBrokerReachable
    from millbeck.client.retry import Deadline

    cluster.spawn(report_outages(cluster))
    try:
        await cluster.any_connection(Deadline(CONNECT_SECONDS_MAX))
    except NoBrokerReachable as error:
        remedy = "set --bootstrap-server or MILLBECK_BOOTSTRAP"
        if target.profile is not None:
            remedy = f"the profile {target.profile} is in use: millbeck profile show, or set --bootstrap-server"
        raise click.ClickException(f"no broker reached at {target.bootstrap}: {error}; {remedy}") from error


async def check_topic(cluster: Cluster, name: str) -> None:
    """Fail fast if the topic does not exist and is not auto-created; a client would retry for a minute."""
    from millbeck.kernel.errors import UnknownTopicOrPartition

    try:
        await cluster.topic(name, timeout_s=CREATION_SECONDS_MAX)
    except UnknownTopicOrPartition as error:
        hint = await similar_topic(cluster, name)
        raise click.ClickException(
            f"there is no topic {name}{hint or ', and brokers do not auto-create it'}: millbeck topic create {name}"
        ) from error


@asynccontextmanager
async def topic_guessed(cluster: Cluster, name: str) -> AsyncIterator[None]:
    """Add the name of a similar topic to the error about a missing topic."""
    from millbeck.kernel.errors import UnknownTopicOrPartition

    try:
        yield
    except UnknownTopicOrPartition as error:
        hint = await similar_topic(cluster, name) or "; millbeck topic list shows the existing topics"
        raise click.ClickException(f"there is no topic {name}{hint}") from error


async def similar_topic(cluster: Cluster, name: str) -> str:
    """A suffix for a message, ``, did you mean orders?``; empty if nothing is similar or no broker answers."""
    from millbeck.cli.suggestions import did_you_mean
    from millbeck.client.admin.topics import list_topics
    from millbeck.kernel.errors import ApiError

    try:
        return did_you_mean(name, await list_topics(cluster, timeout_s=TOPIC_SECONDS_MAX))
    except ApiError:
        return ""


@contextmanager
def reported() -> Iterator[None]:
    """Turn errors of brokers, settings and the operating system into the command's error message."""
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
    """The message for a file on the command line that cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: not a text file: byte {error.start} is not UTF-8"
    return f"{path}: {error.strerror}" if isinstance(error, OSError) and error.strerror else f"{path}: {error}"


def error_text(error: Exception) -> str:
    """The message with advice and Kafka's name of the error, for searching."""
    name = getattr(error, "kafka_name", type(error).__name__)
    remedy = REMEDIES.get(name)
    return f"{error} ({name})" + (f": {remedy}" if remedy is not None else "")
