"""``millbeck token``: delegation tokens, with which other clients log in as the token's owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup, kafka_tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from millbeck.client.admin import Admin
    from millbeck.client.admin.tokens import DelegationToken
    from millbeck.security.principal import Principal

FLAGS: Final = {"--create": "create", "--describe": "list", "--renew": "renew", "--expire": "expire"}
COLUMNS: Final = ("token_id", "owner", "requester", "renewers", "issued", "expires", "cannot_be_renewed_after")


@click.group(cls=SubcommandGroup, flags=FLAGS)
def command() -> None:
    """Create, show, renew and expire delegation tokens (Kafka's kafka-delegation-tokens)."""


def period_option(*names: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(*names, "period_ms", type=int, default=-1, metavar="MS", help=text)


def token_argument(function: Callable[..., None]) -> Callable[..., None]:
    function = click.option(
        "--hmac", metavar="HMAC", help="Identify the token by its HMAC instead of its id, as in Kafka."
    )(function)
    return click.argument("token_id", metavar="TOKEN_ID", required=False)(function)


@command.command("create")
@click.option(
    "--owner",
    "--owner-principal",
    "owner",
    metavar="TYPE:NAME",
    help="The token's owner; default: the principal of this command.",
)
@click.option(
    "--renewer",
    "--renewer-principal",
    "renewers",
    multiple=True,
    metavar="TYPE:NAME",
    help="A principal that may also renew the token; can be repeated.",
)
@period_option(
    "--max-lifetime",
    "--max-life-time-period",
    text="The maximum lifetime in milliseconds, renewals included; default: the broker's limit.",
)
@output_option
@target_options
def create(owner: str | None, renewers: tuple[str, ...], period_ms: int, output: str, target: Target) -> None:
    """Create a token, and print it with its HMAC, with which a client can log in as the owner.

    \b
    Examples:
      millbeck token create --command-config alice.properties
      millbeck token create --renewer User:scheduler --max-lifetime 3600000 --command-config alice.properties
    """
    wanted_owner = None if owner is None else _principal(owner)
    wanted_renewers = [_principal(each) for each in renewers]

    async def work(admin: Admin) -> None:
        token = await admin.create_token(
            owner=wanted_owner, renewers=wanted_renewers, lifetime_ms_max=period_ms if period_ms > 0 else None
        )
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.tokens import print_created

            print_created(token, wanted_renewers, period_ms)
            return
        show_rows([_row(token) | {"hmac": _secret(token)}], output, columns=(*COLUMNS, "hmac"))

    run_admin(target, work)


@command.command("list")
@click.option(
    "--owner", "--owner-principal", "owners", multiple=True, metavar="TYPE:NAME", help="Show only tokens of this owner."
)
@output_option
@target_options
def list_tokens(owners: tuple[str, ...], output: str, target: Target) -> None:
    """Show the tokens that you may describe, without their HMACs.

    \b
    Examples:
      millbeck token list --command-config alice.properties
      millbeck token list --owner User:alice --output json
    """
    wanted = [_principal(each) for each in owners] or None

    async def work(admin: Admin) -> None:
        found = await admin.describe_tokens(wanted)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.tokens import print_described

            print_described(found, wanted)
            return
        show_rows(map(_row, found), output, columns=COLUMNS)

    run_admin(target, work)


@command.command("renew")
@token_argument
@period_option(
    "--period", "--renew-time-period", text="The time until it expires, in milliseconds; default: the broker's."
)
@target_options
@click.pass_context
def renew(ctx: click.Context, /, token_id: str | None, hmac: str | None, period_ms: int, target: Target) -> None:
    """Renew a token: set a later expiration time.

    \b
    Examples:
      millbeck token renew jAKvm2hISaCxqjjVI9eUbg --command-config alice.properties
    """
    _check_named(ctx, token_id, hmac)

    async def work(admin: Admin) -> None:
        secret = await _secret_of(admin, token_id, hmac)
        expires_ms = await admin.renew_token(secret, period_ms=period_ms if period_ms > 0 else None)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.tokens import print_new_expiry

            print_new_expiry("renew", secret, period_ms, expires_ms)
            return
        click.echo(f"renewed until {_time(expires_ms)}")

    run_admin(target, work)


@command.command("expire")
@token_argument
@period_option("--period", "--expiry-time-period", text="The time until it expires, in milliseconds; default: at once.")
@target_options
@click.pass_context
def expire(ctx: click.Context, /, token_id: str | None, hmac: str | None, period_ms: int, target: Target) -> None:
    """Expire a token, by default at once. Clients that are logged in with it stay logged in until their session
    expires.

    \b
    Examples:
      millbeck token expire jAKvm2hISaCxqjjVI9eUbg --command-config alice.properties
      millbeck token expire jAKvm2hISaCxqjjVI9eUbg --period 60000 --command-config alice.properties
    """
    _check_named(ctx, token_id, hmac)

    async def work(admin: Admin) -> None:
        secret = await _secret_of(admin, token_id, hmac)
        expires_ms = await admin.expire_token(secret, period_ms=period_ms if period_ms >= 0 else None)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.tokens import print_new_expiry

            print_new_expiry("expire", secret, period_ms, expires_ms)
            return
        click.echo("the token has expired" if expires_ms < 0 else f"the token expires at {_time(expires_ms)}")

    run_admin(target, work)


def _check_named(ctx: click.Context, token_id: str | None, hmac: str | None) -> None:
    if (token_id is None) == (hmac is None):
        raise click.UsageError("name one token, by its id or by --hmac", ctx)


async def _secret_of(admin: Admin, token_id: str | None, hmac: str | None) -> bytes:
    """The token's HMAC, looked up by its id: everyone who may renew a token may also describe it."""
    from binascii import Error, a2b_base64

    if hmac is not None:
        try:
            return a2b_base64(hmac, strict_mode=True)
        except Error as error:
            raise click.UsageError("--hmac: not base64") from error
    for token in await admin.describe_tokens():
        if token.token_id == token_id:
            return token.hmac
    raise click.ClickException(f"there is no token {token_id} that you may describe")


def _principal(text: str) -> Principal:
    from millbeck.security.principal import parse_principal

    try:
        return parse_principal(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _row(token: DelegationToken) -> dict[str, object]:
    return {
        "token_id": token.token_id,
        "owner": str(token.owner),
        "requester": None if token.requester is None else str(token.requester),
        "renewers": [str(each) for each in token.renewers],
        "issued": _time(token.issued_ms),
        "expires": _time(token.expires_ms),
        "cannot_be_renewed_after": _time(token.max_ms),
    }


def _secret(token: DelegationToken) -> str:
    from binascii import b2a_base64

    return b2a_base64(token.hmac, newline=False).decode()


def _time(time_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
