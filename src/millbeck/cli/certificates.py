"""The files of ``millbeck cert create`` and ``renew``: a directory with a certificate authority, and the certificates
it signs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.connection_options import file_problem
from millbeck.host import real_environment
from millbeck.host.certificate_authority import EXTRA, AuthorityError, CertificateAuthority, is_installed
from millbeck.storage.atomic_file import replace_file

if TYPE_CHECKING:
    from millbeck.host.certificate_authority import KeyType, NewCertificate
    from millbeck.security.tls.certificate import Certificate

CERTIFICATE_FILE: Final = "ca.pem"
KEY_FILE: Final = "ca.key"
_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityFiles:
    """The certificate and the key of a certificate authority. Every failure is a `click.ClickException`."""

    directory: str
    password: str | None = None
    """The password of the private key, if it is encrypted."""

    def __post_init__(self) -> None:
        if not is_installed():
            raise click.ClickException(f"certificates need a package that is not installed: {EXTRA}")

    @property
    def certificate_path(self) -> str:
        return os.path.join(self.directory, CERTIFICATE_FILE)

    @property
    def key_path(self) -> str:
        return os.path.join(self.directory, KEY_FILE)

    def make(self, name: str, *, days: int, key_type: KeyType) -> None:
        for path in (self.certificate_path, self.key_path):
            if os.path.exists(path):
                raise click.ClickException(
                    f"{path} exists already: replacing it would invalidate the certificates it has signed. To "
                    f"extend its validity, use `millbeck cert renew {self.certificate_path}`"
                )
        try:
            made = CertificateAuthority.make(name, days=days, now_ms=now_ms(), key_type=key_type)
        except AuthorityError as error:
            raise click.ClickException(str(error)) from error
        write(self.key_path, made.key_pem, is_private=True)
        write(self.certificate_path, made.certificate_pem, is_private=False)

    def issue(self, wanted: NewCertificate, path: str) -> None:
        try:
            pem = self._load().issue(wanted, now_ms=now_ms())
        except AuthorityError as error:
            raise click.ClickException(str(error)) from error
        write(path, pem, is_private=True)

    def renew(self, path: str, *, days: int | None) -> Certificate:
        """Renew the certificate and key in a file; the authority's own certificate keeps its key. Returns the new
        certificate."""
        old = read(path)
        now = now_ms()
        is_authority = b"PRIVATE KEY-----" not in old
        if days is None:
            certificate = first_certificate(path)
            days = max(1, round((certificate.not_after_ms - certificate.not_before_ms) / 86_400_000))
        try:
            authority = self._load()
            if not is_authority:
                new = authority.renew(old, days=days, now_ms=now)
            elif old == authority.certificate_pem:
                new = authority.renewed(days=days, now_ms=now).certificate_pem
            else:
                raise AuthorityError("it has no private key, and it is not the authority's certificate")
        except AuthorityError as error:
            raise click.ClickException(f"{path}: {error}") from error
        write(path, new, is_private=not is_authority)
        return first_certificate(path)

    def _load(self) -> CertificateAuthority:
        if not os.path.exists(self.certificate_path):
            raise click.ClickException(
                f"there is no certificate authority in {self.directory}: create one with `millbeck cert create ca --ca "
                f"{self.directory}`, or name its directory with --ca"
            )
        certificate, key = read(self.certificate_path), read(self.key_path)
        return CertificateAuthority.load(certificate, key, password=self.password)


def first_certificate(path: str) -> Certificate:
    """The certificate of a PEM file's owner. Raises `click.ClickException`."""
    from millbeck.security.tls.stores import StoreError, all_certificates

    try:
        return all_certificates(read(path), password=None)[0]
    except StoreError as error:
        raise click.ClickException(f"{path}: {error}") from error


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_BYTES_MAX)
    except OSError as error:
        raise click.ClickException(file_problem(path, error)) from error


def write(path: str, content: bytes, *, is_private: bool) -> None:
    """Replace a file atomically, since a node may read it at any time."""
    full = os.path.abspath(path)
    try:
        os.makedirs(os.path.dirname(full), exist_ok=True)
        replace_file(real_environment().files, full, content, is_private=is_private)
    except OSError as error:
        raise click.ClickException(file_problem(path, error)) from error


def now_ms() -> int:
    return int(time.time() * 1000)
