"""A TLS listener beside the plain one on either system, and what their clients need to use it."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bench.cells import Cell
from bench.measure import Bench
from bench.systems import SYSTEMS, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A self-signed certificate for 127.0.0.1 with a P-256 key: Kafka's default for new keys is RSA, which costs both
    systems the same arithmetic.
    """

    key_store: Path
    trusted: Path


def make_certificate(directory: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    ).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    made = Certificate(key_store=directory / "bench.pem", trusted=directory / "bench-trusted.pem")
    made.key_store.write_bytes(private + certificate)
    made.trusted.write_bytes(certificate)
    return made


def secured_node(system: str, directory: Path, certificate: Certificate, *, core: int | None, **overrides: str) -> Node:
    """A node with a second listener that speaks TLS, on its `behind_proxy_port`."""
    node = SYSTEMS[system](directory / system, core=core)
    listeners = f"PLAINTEXT://127.0.0.1:{node.port},TLS://127.0.0.1:{node.behind_proxy_port}"
    node.overrides |= {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificate.key_store),
        "log.segment.delete.delay.ms": "200",
        **{name.replace("_", "."): text for name, text in overrides.items()},
    }
    return node


class SecuredBench(Bench):
    """Topics are made over the plain listener; load runs over TLS."""

    topics = "bench-tls"

    def __init__(self, node: Node, certificate: Certificate, *, client_core: int | None) -> None:
        super().__init__(node, client_core=client_core)
        self._client = {"security.protocol": "ssl", "ssl.ca.location": str(certificate.trusted)}

    def arguments(self, cell: Cell, topic: str) -> dict[str, Any]:
        secured = {"bootstrap": f"127.0.0.1:{self.node.behind_proxy_port}", "client": self._client}
        return super().arguments(cell, topic) | secured
