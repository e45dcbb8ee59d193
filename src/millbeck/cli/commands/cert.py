"""``millbeck cert``: look at certificates in files, and at those that a port presents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup

if TYPE_CHECKING:
    from millbeck.security.tls.certificate import Certificate

CONNECT_SECONDS_MAX: Final = 10.0


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Show certificates: whose they are, for which hosts, and for how long."""


@command.command("inspect")
@click.argument("sources", nargs=-1, required=True, metavar="FILE|HOST:PORT…", type=FILE)
@click.option(
    "--password", metavar="TEXT", envvar="MILLBECK_STORE_PASSWORD", help="The store's password (PKCS #12, JKS)."
)
@output_option
def inspect(sources: tuple[str, ...], password: str | None, output: str) -> None:
    """Show the certificates in files (PEM, PKCS #12 or JKS), or the one that a port presents. Exit code 1 if one has
    expired or is not valid yet.

    A port's certificate is shown whether it is trusted or not.

    \b
    Examples:
      millbeck cert inspect /etc/millbeck/keystore.pem
      millbeck cert inspect broker.example:9094
      millbeck cert inspect truststore.jks --password changeit -o json
    """
    import time

    now_ms = int(time.time() * 1000)
    found = [(source, each) for source in sources for each in certificates_of(source, password)]
    if output == TABLE:
        for source, each in found:
            click.echo(_described(source, each, now_ms))
    else:
        show_rows([_row(source, each, now_ms) for source, each in found], output)
    if any(not each.not_before_ms <= now_ms < each.not_after_ms for _, each in found):
        raise SystemExit(1)


def certificates_of(source: str, password: str | None) -> Sequence[Certificate]:
    """Raises `click.ClickException`."""
    from millbeck.cli.connection_options import file_problem
    from millbeck.security.tls.stores import StoreError, all_certificates

    try:
        with open(source, "rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        host, colon, port = source.rpartition(":")
        if not (colon and port.isdecimal()):
            raise click.ClickException(file_problem(source, error)) from error
        return [_presented_by(host.strip("[]"), int(port))]
    except OSError as error:
        raise click.ClickException(file_problem(source, error)) from error
    try:
        return all_certificates(data, password=password)
    except StoreError as error:
        hint = "" if password is not None or b"-----BEGIN" in data else "; give its password with --password"
        raise click.ClickException(f"{source}: {error}{hint}") from error


def _presented_by(host: str, port: int) -> Certificate:
    import socket
    import ssl

    from millbeck.security.tls.certificate import parse_certificate

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent over this connection
    try:
        with (
            socket.create_connection((host, port), timeout=CONNECT_SECONDS_MAX) as plain,
            context.wrap_socket(plain, server_hostname=host) as connection,
        ):
            data = connection.getpeercert(binary_form=True)
    except OSError as error:
        raise click.ClickException(f"{host}:{port} presents no certificate: {error}") from error
    assert data is not None
    return parse_certificate(data)


def _row(source: str, certificate: Certificate, now_ms: int) -> dict[str, object]:
    return {
        "source": source,
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "hosts": sorted(certificate.alternative_names),
        "key": _key(certificate),
        "not_before": _date(certificate.not_before_ms),
        "not_after": _date(certificate.not_after_ms),
        "days_left": int(certificate.days_left(now_ms)),
    }


def _described(source: str, certificate: Certificate, now_ms: int) -> str:
    days = int(certificate.days_left(now_ms))
    left = f"{days} days left"
    if certificate.not_after_ms <= now_ms:
        left = "expired"
    elif certificate.not_before_ms > now_ms:
        left = "not valid yet"
    lines = [
        f"{source}: {certificate.subject or '(no name)'}",
        f"  issued by  {certificate.issuer or '(no name)'}",
        f"  for        {', '.join(sorted(certificate.alternative_names)) or '(no host)'}",
        f"  key        {_key(certificate)}",
        f"  valid      {_date(certificate.not_before_ms)} to {_date(certificate.not_after_ms)}: {left}",
    ]
    return "\n".join(lines)


def _key(certificate: Certificate) -> str:
    return f"RSA {certificate.rsa_bits}" if certificate.rsa_bits else certificate.key_type


def _date(wall_ms: int) -> str:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "beyond the calendar"
