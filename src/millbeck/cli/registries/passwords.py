"""``millbeck registry password``: the hash of a password or token for the file of users."""

from __future__ import annotations

import secrets

import click

from millbeck.cli.verbs import Command


@click.command(cls=Command)
@click.option("--token", "is_token", is_flag=True, help="Make a bearer token, and print it with its hash.")
def password(is_token: bool) -> None:
    """Print the hash of a password, in the format of millbeck.users.file.

    The password is read from standard input, without echo on a terminal.

    \b
    Examples:
      millbeck registry password
      millbeck registry password --token
    """
    from millbeck.registry.access import SALT_BYTES, hashed_password, hashed_token

    if is_token:
        made = secrets.token_urlsafe(32)
        click.echo(f"token   {made}")
        click.echo(f"hash    {hashed_token(made)}")
        return
    given = click.prompt("password", hide_input=True, confirmation_prompt=True, err=True)
    click.echo(hashed_password(given, secrets.token_bytes(SALT_BYTES)))
