"""Connection settings for clients of a secured local cluster, in the format of each client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.kernel.properties import properties_text

MECHANISM: Final = "SCRAM-SHA-512"
PROTOCOL: Final = "SASL_SSL"
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfigs:
    """The configurations of one user."""

    user: str
    password: str = field(repr=False)
    bootstrap: str
    authority_file: str
    """The PEM file of the certificate authority that signed the nodes' certificates."""

    @property
    def java(self) -> dict[str, str]:
        """The settings for Java clients and Spark, and for millbeck's own client and commands."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": scram_login(self.user, self.password),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority_file,
        }

    @property
    def librdkafka(self) -> dict[str, Any]:
        """The settings for clients built on librdkafka, such as confluent-kafka for Python."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": PROTOCOL,
            "sasl.mechanism": MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.authority_file,
        }

    @property
    def kcat(self) -> dict[str, Any]:
        """The settings for kcat. Distributions ship it with a librdkafka before 2.6.1, whose SCRAM repeats the client's
        nonce, which servers refuse since CVE-2024-56128; so it uses PLAIN, where the password is encrypted by TLS."""
        return {**self.librdkafka, "sasl.mechanism": "PLAIN"}

    @property
    def kafka_python(self) -> dict[str, Any]:
        """Keyword arguments for the clients of kafka-python."""
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": PROTOCOL,
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
            "ssl_cafile": self.authority_file,
        }

    def files(self) -> dict[str, str]:
        """File names and contents."""
        return {
            f"{self.user}.properties": properties_text(self.java),
            f"{self.user}.librdkafka.conf": _lines(self.librdkafka),
            f"{self.user}.kcat.conf": _lines(self.kcat),
            f"{self.user}.json": json.dumps(self.librdkafka, indent=2) + "\n",
        }


def _lines(settings: Mapping[str, str]) -> str:
    """A file in librdkafka's format, without the escapes of Java's properties format."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def scram_login(user: str, password: str) -> str:
    """The JAAS configuration of a login by SCRAM; neither may contain quotes."""
    return f'{_LOGIN_MODULE} required username="{user}" password="{password}";'
