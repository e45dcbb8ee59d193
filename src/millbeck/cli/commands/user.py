"""``millbeck user``: manage SCRAM users, whose credentials are in the cluster's metadata."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.connection_options import Target, error_text, file_problem, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.users import Credentials, DeletedCredential, NewCredential
    from millbeck.kernel.errors import ApiError
    from millbeck.security.sasl.scram_messages import ScramMechanism

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Create and delete SCRAM users, and change their passwords."""


def password_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options for the source of the password and for its hashing."""
    for option in (
        click.option(
            "--iterations",
            type=click.IntRange(4096, 16384),
            default=8192,
            show_default=True,
            help="The SCRAM iterations: how many times the password is hashed.",
        ),
        click.option(
            "--password", default=None, help="The password; other users of this machine can see it in the process list."
        ),
        click.option("--password-file", default=None, metavar="FILE", help="A file whose first line is the password."),
    ):
        function = option(function)
    return function


def mechanism_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--mechanism", "mechanisms", type=click.Choice(MECHANISMS, case_sensitive=False), multiple=True, help=text
    )


@command.command("list")
@output_option
@target_options
def list_users(output: str, target: Target) -> None:
    """Show all users with SCRAM credentials.

    \b
    Examples:
      millbeck user list
      millbeck user list --output json
    """

    async def work(admin: Admin) -> None:
        show_rows(_rows((await admin.describe_users()).all()), output, columns=("user", "mechanism", "iterations"))

    run_admin(target, work)


@command.command("describe")
@click.argument("names", metavar="USER...", nargs=-1, required=True)
@output_option
@target_options
def describe(names: tuple[str, ...], output: str, target: Target) -> None:
    """Show the mechanisms of users.

    \b
    Examples:
      millbeck user describe alice
    """

    async def work(admin: Admin) -> None:
        found = await admin.describe_users(names)
        show_rows(_rows(found.succeeded), output, columns=("user", "mechanism", "iterations"))
        _raise_failures(found.failed)

    run_admin(target, work)


@command.command("create")
@click.argument("name", metavar="USER")
@mechanism_option(f"The SCRAM mechanism; default: {DEFAULT_MECHANISM}; can be repeated.")
@password_options
@target_options
def create(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: str | None,
    password_file: str | None,
    target: Target,
) -> None:
    """Create a user. The command prompts for the password, or reads it from standard input if that is not a terminal.

    \b
    Examples:
      millbeck user create alice
      echo alice-secret | millbeck user create alice --mechanism SCRAM-SHA-256
      millbeck user create alice --password-file alice.txt
    """
    chosen = [_mechanism(each) for each in mechanisms or (DEFAULT_MECHANISM,)]

    async def check(admin: Admin) -> None:
        there = (await admin.describe_users([name])).succeeded.get(name, {})
        if taken := [each.mechanism_name for each in chosen if each in there]:
            raise click.ClickException(
                f"user {name} exists with {', '.join(taken)}: change the password with millbeck user passwd {name}"
            )

    run_admin(target, check)
    secret = _password(name, password, password_file)

    async def work(admin: Admin) -> None:
        await _set(admin, name, chosen, secret, iterations)
        click.echo(f"created user {name} with {_shown(chosen)}")

    run_admin(target, work)


@command.command("passwd")
@click.argument("name", metavar="USER")
@mechanism_option("Change only the credential for this mechanism; default: all of the user's.")
@password_options
@target_options
def passwd(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: str | None,
    password_file: str | None,
    target: Target,
) -> None:
    """Change a user's password. Connections that are logged in stay logged in until their sessions expire.

    \b
    Examples:
      millbeck user passwd alice
      millbeck user passwd alice --password-file alice.txt
    """
    chosen: list[ScramMechanism] = []

    async def check(admin: Admin) -> None:
        chosen.extend(await _existing(admin, name, mechanisms))

    run_admin(target, check)
    secret = _password(name, password, password_file)

    async def work(admin: Admin) -> None:
        await _set(admin, name, chosen, secret, iterations)
        click.echo(f"changed the password of user {name} for {_shown(chosen)}")

    run_admin(target, work)


@command.command("delete")
@click.argument("name", metavar="USER")
@mechanism_option("Delete only the credential for this mechanism; default: all.")
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@target_options
def delete(name: str, mechanisms: tuple[str, ...], is_sure: bool, target: Target) -> None:
    """Delete a user, so that it cannot log in any more. Its ACLs are kept.

    \b
    Examples:
      millbeck user delete alice
      millbeck user delete alice --mechanism SCRAM-SHA-256 --yes
    """

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.users import DeletedCredential

        chosen = await _existing(admin, name, mechanisms)
        if not is_sure and not click.confirm(f"Delete user {name} ({_shown(chosen)})?", default=False):
            click.echo("nothing was deleted")
            return
        for mechanism in chosen:
            await _alter(admin, name, DeletedCredential(mechanism=mechanism))
        click.echo(f"deleted user {name} ({_shown(chosen)})")

    run_admin(target, work)


async def _existing(admin: Admin, name: str, mechanisms: tuple[str, ...]) -> list[ScramMechanism]:
    """The mechanisms to change, which the user must have."""
    found = await admin.describe_users([name])
    _raise_failures(found.failed)
    there = found[name]
    chosen = [_mechanism(each) for each in mechanisms] or list(there)
    if missing := [each.mechanism_name for each in chosen if each not in there]:
        raise click.ClickException(f"user {name} has no credential for {', '.join(missing)}, only for {_shown(there)}")
    return chosen


async def _set(admin: Admin, name: str, mechanisms: list[ScramMechanism], password: str, iterations: int) -> None:
    from millbeck.client.admin.users import NewCredential

    for mechanism in mechanisms:
        await _alter(admin, name, NewCredential(mechanism=mechanism, password=password, iterations=iterations))


async def _alter(admin: Admin, name: str, change: NewCredential | DeletedCredential) -> None:
    # One request each: two changes of a user in the same request are refused.
    _raise_failures((await admin.alter_users({name: change})).failed)


def _password(name: str, given: str | None, path: str | None) -> str:
    if given is not None and path is not None:
        raise click.UsageError("give --password or --password-file, not both")
    password = given
    if path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                password = file.readline().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise click.ClickException(file_problem(path, error)) from error
    elif password is None:
        if sys.stdin.isatty():
            password = str(click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True))
        else:
            password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.ClickException("the password is empty: give it on standard input or with --password-file")
    return password


def _mechanism(name: str) -> ScramMechanism:
    from millbeck.security.sasl.scram_messages import BY_NAME

    return BY_NAME[name.upper()]


def _shown(mechanisms: list[ScramMechanism] | Credentials) -> str:
    return ", ".join(each.mechanism_name for each in mechanisms)


def _rows(users: dict[str, Credentials]) -> list[dict[str, object]]:
    return [
        {"user": name, "mechanism": mechanism.mechanism_name, "iterations": iterations}
        for name, credentials in sorted(users.items())
        for mechanism, iterations in credentials.items()
    ]


def _raise_failures(failed: Mapping[str, ApiError]) -> None:
    if failed:
        raise click.ClickException("; ".join(error_text(error) for error in failed.values()))
