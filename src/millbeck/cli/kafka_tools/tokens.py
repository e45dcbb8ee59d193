"""The output of kafka-delegation-tokens, which `millbeck.cli.commands.token` prints when it runs as that tool."""

from __future__ import annotations

import time
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from millbeck.client.admin.tokens import DelegationToken
    from millbeck.security.principal import Principal

WIDTHS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
HEADINGS: Final = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")


def print_created(token: DelegationToken, renewers: Sequence[Principal], lifetime_ms: int) -> None:
    shown = ", ".join(map(str, renewers))
    click.echo(f"Calling create token operation with renewers :[{shown}] , max-life-time-period :{lifetime_ms}")
    click.echo(f"Created delegation token with tokenId : {token.token_id}")
    _print_table([token])


def print_described(tokens: Sequence[DelegationToken], owners: Sequence[Principal] | None) -> None:
    named = f"owners: [{', '.join(map(str, owners))}]" if owners else "current user."
    click.echo(f"Calling describe token operation for {named}")
    click.echo(f"Total number of tokens : {len(tokens)}", nl=False)
    _print_table(tokens)


def print_new_expiry(verb: str, hmac: bytes, period_ms: int, expires_ms: int) -> None:
    """``verb`` is renew or expire."""
    text = b2a_base64(hmac, newline=False).decode()
    click.echo(f"Calling {verb} token operation with hmac :{text} , {verb}-time-period :{period_ms}")
    click.echo(f"Completed {verb} operation. New expiry date : {_minute(expires_ms)}", nl=False)


def _print_table(tokens: Iterable[DelegationToken]) -> None:
    rows = [HEADINGS, *map(_cells, tokens)]
    for row in rows:
        click.echo("\n" + " ".join(text.ljust(width) for text, width in zip(row, WIDTHS, strict=True)))


def _cells(token: DelegationToken) -> tuple[str, ...]:
    return (
        token.token_id,
        b2a_base64(token.hmac, newline=False).decode(),
        str(token.owner),
        str(token.requester or token.owner),
        f"[{','.join(map(str, token.renewers))}]",
        *map(_minute, (token.issued_ms, token.expires_ms, token.max_ms)),
    )


def _minute(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M", time.localtime(time_ms / 1000))
