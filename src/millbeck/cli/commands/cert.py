"""``millbeck cert``: create and renew certificates, and show those in files or of a port."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup

if TYPE_CHECKING:
    from millbeck.security.tls.certificate import Certificate

CONNECT_SECONDS_MAX: Final = 10.0
AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 397
"""The default validity in days; browsers and some clients refuse certificates with a longer one."""


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Create and renew certificates, and show their owners, hosts and validity."""


@command.command("inspect")
@click.argument("sources", nargs=-1, required=True, metavar="FILE|HOST:PORT…", type=FILE)
@click.option(
    "--password", metavar="TEXT", envvar="MILLBECK_STORE_PASSWORD", help="The password of a PKCS #12 or JKS store."
)
@output_option
def inspect(sources: tuple[str, ...], password: str | None, output: str) -> None:
    """Show the certificates in files (PEM, PKCS #12 or JKS), or the one that a server presents on a port. Exit code 1
    if one has expired or is not valid yet.

    The certificate of a port is shown whether or not it is trusted.

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


def authority_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options for the certificate authority's directory and password."""
    for option in (
        click.option(
            "--ca-password",
            metavar="TEXT",
            envvar="MILLBECK_CA_PASSWORD",
            show_envvar=True,
            help="The password of the certificate authority's key, if the key is encrypted.",
        ),
        click.option(
            "--ca",
            "directory",
            metavar="DIR",
            type=FILE,
            default=".",
            show_default="this one",
            help="The directory of the certificate authority, with ca.pem and ca.key.",
        ),
    ):
        function = option(function)
    return function


@command.command("create")
@click.argument("kind", type=click.Choice(["ca", "node", "client"]))
@click.argument("name", required=False)
@click.option(
    "--host", "hosts", multiple=True, metavar="HOST", help="A host name or address of the node; can be repeated."
)
@click.option("--local", is_flag=True, help="Include every host name and address of this machine.")
@click.option("--days", type=click.IntRange(1, 36_500), help="The validity in days.  [default: ca 3650, others 397]")
@click.option(
    "--key",
    "key_type",
    type=click.Choice(["ec", "rsa"]),
    default="ec",
    show_default=True,
    help="The type of the key: ec is P-256, rsa is RSA with 3072 bits.",
)
@click.option("--out", metavar="FILE", type=FILE, help="The file for the key and certificate.  [default: NAME.pem]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@authority_options
def create(
    kind: str,
    name: str | None,
    hosts: tuple[str, ...],
    local: bool,
    days: int | None,
    key_type: str,
    out: str | None,
    force: bool,
    directory: str,
    ca_password: str | None,
) -> None:
    """Create a certificate authority, or a key and a certificate signed by it.

    A node's certificate is for the hosts by which clients connect; a client's names the principal User:CN=NAME. Both
    are one PEM file, for ssl.keystore.location, that only you can read. Who is to trust them needs ca.pem, as
    ssl.truststore.location. Needs millbeck[security].

    \b
    Examples:
      millbeck cert create ca --ca /etc/millbeck/ca
      millbeck cert create node broker-1 --host broker-1.example --host 10.0.0.7 --ca /etc/millbeck/ca
      millbeck cert create node laptop --local
      millbeck cert create client alice --ca /etc/millbeck/ca
    """
    from millbeck.cli.certificates import AuthorityFiles
    from millbeck.host.certificate_authority import KeyType, NewCertificate

    authority = AuthorityFiles(directory=directory, password=ca_password)
    if kind == "ca":
        if hosts or local or out:
            raise click.UsageError("--host, --local and --out cannot be used with ca: its directory is --ca")
        authority.make(name or "millbeck authority", days=days or AUTHORITY_DAYS, key_type=KeyType(key_type))
        click.echo(
            f"{authority.certificate_path}: the authority's certificate, for everyone who should "
            "trust certificates it signs"
        )
        click.echo(f"{authority.key_path}: the authority's private key; do not copy it to the nodes")
        return
    if name is None:
        raise click.UsageError(f"a {kind} needs a name: millbeck cert create {kind} NAME")
    if kind == "client" and (hosts or local):
        raise click.UsageError("--host and --local cannot be used with client")
    if kind == "node" and not (hosts or local):
        raise click.UsageError("a node needs the hosts that clients connect to: --host, or --local for this machine")
    path = out or f"{name}.pem"
    if os.path.exists(path) and not force:
        raise click.UsageError(
            f"{path} exists already: renew it with `millbeck cert renew {path}`, or give --force to replace it"
        )
    if local:
        from millbeck.host.local_names import local_names

        hosts = tuple(dict.fromkeys([*hosts, *local_names()]))
    wanted = NewCertificate(
        name=name,
        days=days or CERTIFICATE_DAYS,
        hosts=hosts,
        is_server=kind == "node",
        key_type=KeyType(key_type),
    )
    authority.issue(wanted, path)
    click.echo(f"ssl.keystore.location={os.path.abspath(path)}")
    click.echo(f"ssl.truststore.location={os.path.abspath(authority.certificate_path)}")


@command.command("renew")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=FILE)
@click.option("--days", type=click.IntRange(1, 36_500), help="The validity in days.  [default: as long as before]")
@click.option(
    "--if-days-left",
    type=click.IntRange(0),
    metavar="N",
    help="Renew only if the certificate expires in less than N days.",
)
@authority_options
def renew(
    files: tuple[str, ...], days: int | None, if_days_left: int | None, directory: str, ca_password: str | None
) -> None:
    """Replace certificates by new ones for the same owner and hosts, with new keys.

    A running node takes the new file within millbeck.ssl.reload.interval.ms, without a restart. The authority's own
    certificate, ca.pem, keeps its key: what it has signed stays valid, and those who trust it need the new file before
    the old one ends.

    \b
    Examples:
      millbeck cert renew broker-1.pem --ca /etc/millbeck/ca
      millbeck cert renew *.pem --if-days-left 30
      millbeck cert renew ca.pem --days 3650
    """
    from millbeck.cli.certificates import AuthorityFiles, first_certificate, now_ms

    authority = AuthorityFiles(directory=directory, password=ca_password)
    for path in files:
        if if_days_left is not None:
            left = first_certificate(path).days_left(now_ms())
            if left >= if_days_left:
                click.echo(f"{path}: {int(left)} days left, kept")
                continue
        new = authority.renew(path, days=days)
        click.echo(f"{path}: {new.subject}, valid to {_date(new.not_after_ms)}")


def certificates_of(source: str, password: str | None) -> Sequence[Certificate]:
    """The certificates of a source. Raises `click.ClickException`."""
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
        hint = "" if password is not None or b"-----BEGIN" in data else "; give the store's password with --password"
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
        return "after the year 9999"
