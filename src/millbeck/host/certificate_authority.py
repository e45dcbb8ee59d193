"""A certificate authority: makes keys, and signs the certificates of nodes and clients.

It is for clusters without a certificate authority of their own: ``millbeck up --secure``, ``millbeck cert`` and the
fixtures for tests use it. It needs the package ``cryptography``, which the extra ``millbeck[security]`` installs, and
is in ``host`` because the keys come from the system's random numbers.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cryptography import x509

EXTRA: Final = "pip install 'millbeck[security]'"
RSA_BITS: Final = 3072
BACKDATED: Final = datetime.timedelta(hours=1)
"""The time before its creation from which a certificate is valid, because clocks differ."""
COMMON_NAME_MAX: Final = 64
"""The maximum length of a common name in X.509."""


class KeyType(Enum):
    EC = "ec"
    RSA = "rsa"


class AuthorityError(ValueError):
    """A certificate cannot be created; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCertificate:
    """The properties of a new certificate."""

    name: str
    """The common name."""
    days: int
    hosts: tuple[str, ...] = ()
    """For a node: the host names and addresses by which clients connect."""
    is_server: bool = False
    """Whether the certificate is for a node, which is also a client of other nodes, or only for a client."""
    key_type: KeyType = KeyType.EC


def is_installed() -> bool:
    return find_spec("cryptography") is not None


class CertificateAuthority:
    def __init__(self, certificate: x509.Certificate, key: Any) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def make(cls, name: str, *, days: int, now_ms: int, key_type: KeyType = KeyType.EC) -> CertificateAuthority:
        """Create an authority with a self-signed certificate."""
        key = _new_key(key_type)
        return cls(_authority_certificate(_subject(name), key, days=days, now_ms=now_ms), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes, *, password: str | None = None) -> CertificateAuthority:
        """Load an authority from PEM; raises `AuthorityError`."""
        from cryptography import x509

        try:
            loaded = x509.load_pem_x509_certificate(certificate)
        except ValueError as error:
            raise AuthorityError(f"the authority's certificate cannot be read: {error}") from error
        try:
            is_authority = loaded.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except x509.ExtensionNotFound:
            is_authority = False
        if not is_authority:
            raise AuthorityError(
                "the certificate is not that of a certificate authority: it must not sign other certificates"
            )
        loaded_key = _load_key(key, password)
        if loaded_key.public_key() != loaded.public_key():
            raise AuthorityError("the authority's key does not belong to its certificate")
        return cls(loaded, loaded_key)

    @property
    def certificate_pem(self) -> bytes:
        return _pem(self._certificate)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    def issue(self, wanted: NewCertificate, *, now_ms: int) -> bytes:
        """Create a private key and its certificate, as PEM. Raises `AuthorityError`."""
        from cryptography import x509

        extensions: list[x509.ExtensionType] = []
        if wanted.hosts:
            extensions.append(x509.SubjectAlternativeName([_alternative(host) for host in wanted.hosts]))
        usage = x509.ExtendedKeyUsage(_purposes(is_server=wanted.is_server))
        return self._signed(_subject(wanted.name), wanted.key_type, [*extensions, usage], wanted.days, now_ms)

    def renew(self, pem: bytes, *, days: int, now_ms: int) -> bytes:
        """Create a new key, and a certificate for the same owner, hosts and purposes. Raises `AuthorityError`."""
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

        try:
            old = x509.load_pem_x509_certificate(pem)
        except ValueError as error:
            raise AuthorityError(f"it contains no readable certificate: {error}") from error
        if old.issuer != self._certificate.subject:
            raise AuthorityError(
                f"it was issued by {old.issuer.rfc4514_string()}, not by {self._certificate.subject.rfc4514_string()}"
            )
        kept = (x509.SubjectAlternativeName, x509.ExtendedKeyUsage)
        extensions = [each.value for each in old.extensions if isinstance(each.value, kept)]
        key_type = KeyType.RSA if isinstance(old.public_key(), RSAPublicKey) else KeyType.EC
        return self._signed(old.subject, key_type, extensions, days, now_ms)

    def renewed(self, *, days: int, now_ms: int) -> CertificateAuthority:
        """The authority with a longer validity: its certificates stay valid, since its key and name are unchanged."""
        certificate = _authority_certificate(self._certificate.subject, self._key, days=days, now_ms=now_ms)
        return CertificateAuthority(certificate, self._key)

    def _signed(
        self,
        subject: x509.Name,
        key_type: KeyType,
        extensions: Iterable[x509.ExtensionType],
        days: int,
        now_ms: int,
    ) -> bytes:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        key = _new_key(key_type)
        begins, ends = _dates(days, now_ms)
        if ends > self._certificate.not_valid_after_utc:
            left = (self._certificate.not_valid_after_utc - _time(now_ms)).days
            raise AuthorityError(
                f"the authority's certificate expires in {left} days, before {days} days: renew it first, or "
                "request fewer days"
            )
        builder = _builder(subject, self._certificate.subject, key, begins, ends)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        # RSA keys also encrypt the session's key, in the oldest suites of TLS 1.2.
        builder = builder.add_extension(
            _key_usage(digital_signature=True, key_encipherment=key_type is KeyType.RSA), critical=True
        )
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer_key, critical=False)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return _key_pem(key) + _pem(builder.sign(self._key, hashes.SHA256()))


def _authority_certificate(subject: x509.Name, key: Any, *, days: int, now_ms: int) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    builder = _builder(subject, subject, key, *_dates(days, now_ms))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Any, begins: datetime.datetime, ends: datetime.datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(**given: bool) -> x509.KeyUsage:
    from cryptography import x509

    names = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{name: given.get(name, False) for name in names})


def _purposes(*, is_server: bool) -> list[x509.ObjectIdentifier]:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    server = [ExtendedKeyUsageOID.SERVER_AUTH] if is_server else []
    return [*server, ExtendedKeyUsageOID.CLIENT_AUTH]


def _subject(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    if not 0 < len(name) <= COMMON_NAME_MAX:
        raise AuthorityError(f"a certificate's name has 1 to {COMMON_NAME_MAX} characters, not {len(name)}")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise AuthorityError(f"{host[:80]!r} is neither an address nor a host name: {error}") from error


def _new_key(key_type: KeyType) -> Any:
    if key_type is KeyType.RSA:
        from cryptography.hazmat.primitives.asymmetric import rsa

        return rsa.generate_private_key(65537, RSA_BITS)
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _load_key(pem: bytes, password: str | None) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem, None if password is None else password.encode())
    except (TypeError, ValueError) as error:
        raise AuthorityError(f"the authority's key cannot be read: {error}") from error


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    pem: bytes = certificate.public_bytes(Encoding.PEM)
    return pem


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def _dates(days: int, now_ms: int) -> tuple[datetime.datetime, datetime.datetime]:
    now = _time(now_ms)
    return now - BACKDATED, now + datetime.timedelta(days=days)


def _time(wall_ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(wall_ms // 1000, datetime.UTC)
