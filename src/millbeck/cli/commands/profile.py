"""``millbeck profile``: store bootstrap servers and client settings as named profiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.completed_types import FILE, PROFILE
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.profiles import ProfileStore
from millbeck.cli.verbs import SubcommandGroup, one_name

if TYPE_CHECKING:
    from millbeck.kernel.options import Section

BOOTSTRAP: Final = "bootstrap.servers"
MASK: Final = "[hidden]"


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Store bootstrap servers and client settings as named profiles, and choose the current one.

    The current profile is used by every command that connects to a cluster, unless brokers are named by
    --bootstrap-server, MILLBECK_BOOTSTRAP or --command-config. --profile and MILLBECK_PROFILE choose another one.
    """


@command.command("create")
@click.argument("name")
@click.option("-b", "--bootstrap-server", "--brokers", metavar="HOST:PORT,…", help="Bootstrap brokers.")
@click.option("--command-config", metavar="FILE", type=FILE, help="A .properties file with client settings.")
@click.option(
    "-X", "--set", "properties", multiple=True, metavar="KEY=VALUE", help="A client setting; can be repeated."
)
@click.option("--force", is_flag=True, help="Replace a profile of this name.")
@click.option("--no-use", is_flag=True, help="Do not make this profile the current one.")
def create(
    name: str,
    bootstrap_server: str | None,
    command_config: str | None,
    properties: tuple[str, ...],
    force: bool,
    no_use: bool,
) -> None:
    """Create a profile and make it the current one.

    \b
    Examples:
      millbeck profile create local -b 127.0.0.1:9092
      millbeck profile create prod -b kafka-1:9093,kafka-2:9093 --command-config prod.properties
      millbeck profile create staging -b staging:9093 -X security.protocol=SSL --no-use
    """
    from millbeck.cli.connection_options import client_settings_of

    store = ProfileStore.of_user()
    settings = client_settings_of(command_config, properties)
    if bootstrap_server is not None:
        settings[BOOTSTRAP] = bootstrap_server
    if not settings.get(BOOTSTRAP):
        raise click.UsageError("a profile needs brokers: give --bootstrap-server HOST:PORT")
    _check_known(settings)
    store.save(name, settings, replaces=force)
    if not no_use:
        store.use(name)
    click.echo(f"{'saved' if no_use else 'using'} profile {name}: {settings[BOOTSTRAP]}")


@command.command("use")
@click.argument("name", required=False, type=PROFILE)
@click.option("--none", is_flag=True, help="Use no profile.")
@click.pass_context
def use(ctx: click.Context, /, name: str | None, none: bool) -> None:
    """Make a profile the current one.

    \b
    Examples:
      millbeck profile use prod
      millbeck profile use --none
    """
    store = ProfileStore.of_user()
    if none and name is None:
        store.use_none()
        click.echo("using no profile")
        return
    chosen = one_name(ctx, name, None, "profile")
    if none:
        raise click.UsageError("--none takes no name", ctx)
    store.use(chosen)
    click.echo(f"using profile {chosen}")


@command.command("list")
@output_option
def list_profiles(output: str) -> None:
    """List the profiles.

    \b
    Examples:
      millbeck profile list
    """
    store = ProfileStore.of_user()
    current = store.current()
    rows = [
        {"name": name, "current": name == current, "brokers": store.load(name).get(BOOTSTRAP)} for name in store.names()
    ]
    if not rows and output == TABLE:
        click.echo("no profiles yet: millbeck profile create NAME -b HOST:PORT", err=True)
    show_rows(rows, output)


@command.command("show")
@click.argument("name", required=False, type=PROFILE)
@output_option
def show_profile(name: str | None, output: str) -> None:
    """Show the settings of a profile, by default the current one; secrets are hidden.

    \b
    Examples:
      millbeck profile show
      millbeck profile show prod -o json
    """
    store = ProfileStore.of_user()
    chosen = name or store.current()
    if chosen is None:
        raise click.ClickException("no profile is in use: millbeck profile use NAME")
    shown = {key: MASK if is_secret(key) else value for key, value in sorted(store.load(chosen).items())}
    if output == TABLE:
        show_rows([{"setting": key, "value": value} for key, value in shown.items()], output)
    else:
        show({"name": chosen, "settings": shown}, output)


@command.command("delete")
@click.argument("name", type=PROFILE)
def delete(name: str) -> None:
    """Delete a profile.

    \b
    Examples:
      millbeck profile delete staging
    """
    ProfileStore.of_user().delete(name)
    click.echo(f"deleted profile {name}")


def is_secret(key: str) -> bool:
    """Whether a client setting holds a secret; for a setting that this release does not declare, its name decides."""
    declared = [each for section in _sections() for each in section.options if each.name == key]
    if declared:
        return declared[0].sensitive
    return any(word in key for word in ("password", "secret", "token", "jaas", "assertion", ".key"))


def _check_known(settings: Iterable[str]) -> None:
    from millbeck.cli.suggestions import did_you_mean
    from millbeck.client.foreign_keys import is_known_elsewhere

    known = {each.name for section in _sections() for each in section.options}
    for key in settings:
        if key not in known and not is_known_elsewhere(key):
            raise click.UsageError(f"{key[:100]} is not a setting of a client{did_you_mean(key, known)}")


def _sections() -> tuple[type[Section], ...]:
    from millbeck.client.admin.client import AdminConfig
    from millbeck.client.consumer.config import ConsumerConfig
    from millbeck.client.producer.config import ProducerConfig
    from millbeck.client.share.config import ShareConsumerConfig

    return AdminConfig, ProducerConfig, ConsumerConfig, ShareConsumerConfig
