"""Security of a local cluster without a configuration file: an authority, certificates, users and their first ACLs.

Everything is in one directory, beside those of the nodes. It is created at the first start, before the nodes'
directories are formatted. Later starts only renew the nodes' certificates, when they expire soon or when the machine
has a new name or address.

- Clients connect by TLS and log in by SCRAM. ``admin`` is a superuser; ``app`` may use every topic, group and
  transactional id except the internal topics.
- Brokers log in to each other by SCRAM as ``node``. Controllers cannot, because the credentials are in the log that
  they must read first; nodes authenticate to them with their certificates.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from millbeck.host.certificate_authority import CertificateAuthority, NewCertificate
from millbeck.kernel.environment import Environment, Files
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import parse_properties, properties_text
from millbeck.security.acls import WILDCARD, AccessControlEntry
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from millbeck.security.sasl.credential_text import CredentialText
from millbeck.security.sasl.scram_messages import BY_NAME
from millbeck.security.tls.certificate import Certificate
from millbeck.security.tls.stores import StoreError, read_key_store, read_trust_store
from millbeck.server.local.client_configs import MECHANISM, PROTOCOL, ClientConfigs, scram_login
from millbeck.storage.atomic_file import read_file, replace_file

DIRECTORY: Final = "security"
ADMIN: Final = "admin"
APP: Final = "app"
NODE: Final = "node"
AUTHORITY_FILE: Final = "ca.pem"
AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 397
RENEWED_BEFORE_DAYS: Final = 30
_AUTHORITY_KEY_FILE: Final = "ca.key"
_SECRETS_FILE: Final = "secrets.properties"
_TOKEN_KEY: Final = "delegation.token.secret.key"
_SECRET_BYTES: Final = 24
_FILE_BYTES_MAX: Final = 1 << 20
_NODE_NAME: Final = "millbeck-node"


def _password_key(user: str) -> str:
    return f"user.{user}.password"


_SECRETS: Final = (*map(_password_key, (ADMIN, APP, NODE)), _TOKEN_KEY)


class SecurityDamaged(Exception):
    """Files of the directory are missing or unusable; the message names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredCluster:
    directory: str
    passwords: Mapping[str, str] = field(repr=False)
    token_key: str = field(repr=False)

    @property
    def authority_file(self) -> str:
        return f"{self.directory}/{AUTHORITY_FILE}"

    def clients(self, user: str, bootstrap: str) -> ClientConfigs:
        return ClientConfigs(
            user=user, password=self.passwords[user], bootstrap=bootstrap, authority_file=self.authority_file
        )

    def certificate_file(self, node_id: int) -> str:
        return f"{self.directory}/{_node_file(node_id)}"

    def write_client_files(self, files: Files, bootstrap: str) -> list[str]:
        """Write the users' client configurations with the current addresses; returns the file names."""
        written = []
        for user in (ADMIN, APP):
            for name, text in self.clients(user, bootstrap).files().items():
                path = f"{self.directory}/{name}"
                if read_file(files, path, _FILE_BYTES_MAX) != text.encode():
                    replace_file(files, path, text.encode(), is_private=True)
                written.append(name)
        return written

    def node_settings(self, node_id: int) -> dict[str, str]:
        """Broker settings, in addition to those of a node with listeners SASL_SSL and perhaps CONTROLLER."""
        return {
            "listener.security.protocol.map": f"{PROTOCOL}:{PROTOCOL},CONTROLLER:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.certificate_file(node_id),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority_file,
            "sasl.enabled.mechanisms": f"{MECHANISM},PLAIN",
            "millbeck.plain.verify": "scram",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            f"listener.name.{PROTOCOL.lower()}.{MECHANISM.lower()}.sasl.jaas.config": scram_login(
                NODE, self.passwords[NODE]
            ),
            "listener.name.controller.ssl.client.auth": "required",
            "listener.name.controller.ssl.principal.mapping.rules": f"RULE:^CN={_NODE_NAME}-[0-9]+$/{NODE}/,DEFAULT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN};User:{NODE}",
            _TOKEN_KEY: self.token_key,
            "millbeck.audit.file": f"{self.directory}/audit-{node_id}.log",
        }

    @property
    def users(self) -> list[CredentialText]:
        """The initial users of the cluster."""
        mechanism = BY_NAME[MECHANISM]
        return [CredentialText(mechanism=mechanism, name=name, password=text) for name, text in self.passwords.items()]

    @property
    def acls(self) -> list[AccessControlEntry]:
        """The initial ACLs of the cluster."""
        return application_acls(f"User:{APP}")


def application_acls(principal: str) -> list[AccessControlEntry]:
    """The ACLs of an application: every topic, group and transactional id, except the internal topics."""
    operations = {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.DESCRIBE_CONFIGS,
        ),
        ResourceType.GROUP: (Operation.READ, Operation.DELETE),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE,),
    }
    granted = [
        _entry(principal, kind, WILDCARD, operation, PatternType.LITERAL, Permission.ALLOW)
        for kind, allowed in operations.items()
        for operation in allowed
    ]
    idempotent = Operation.IDEMPOTENT_WRITE
    return [
        *granted,
        _entry(principal, ResourceType.CLUSTER, CLUSTER_NAME, idempotent, PatternType.LITERAL, Permission.ALLOW),
        _entry(principal, ResourceType.TOPIC, "__", Operation.ALL, PatternType.PREFIXED, Permission.DENY),
    ]


def is_secured(files: Files, data: str) -> bool:
    """Whether ``data`` has the node directories of a secured cluster."""
    return files.exists(f"{data}/{DIRECTORY}/{_SECRETS_FILE}")


def read_secured(files: Files, data: str) -> SecuredCluster:
    """The users of a secured cluster. Raises `SecurityDamaged` and OSError."""
    directory = f"{data}/{DIRECTORY}"
    return _cluster_of(directory, _read_secrets(files, directory) or {})


def secure(
    environment: Environment, data: str, *, node_ids: Sequence[int], hosts: Sequence[str], is_formatted: bool
) -> SecuredCluster:
    """Create the missing files of a new cluster, and renew the nodes' certificates.

    ``is_formatted``: the cluster has been started, so its users exist and cannot be created again. Raises
    `SecurityDamaged` and OSError.
    """
    files, directory = environment.files, f"{data}/{DIRECTORY}"
    files.make_directory(directory)
    secrets = _secrets(environment, directory, may_make=not is_formatted)
    authority = _Authority(environment, directory, may_make=not is_formatted)
    for node_id in node_ids:
        path = f"{directory}/{_node_file(node_id)}"
        if not _still_good(environment, path, authority.trusted, hosts):
            wanted = NewCertificate(
                name=f"{_NODE_NAME}-{node_id}", days=CERTIFICATE_DAYS, hosts=tuple(hosts), is_server=True
            )
            pem = authority.load().issue(wanted, now_ms=environment.clock.wall_ms())
            replace_file(files, path, pem, is_private=True)
    return _cluster_of(directory, secrets)


def _cluster_of(directory: str, secrets: Mapping[str, str]) -> SecuredCluster:
    missing = [name for name in _SECRETS if not secrets.get(name)]
    if missing:
        raise SecurityDamaged(f"{directory}/{_SECRETS_FILE} has no {', '.join(missing)}: restore it")
    passwords = {user: secrets[_password_key(user)] for user in (ADMIN, APP, NODE)}
    return SecuredCluster(directory=directory, passwords=passwords, token_key=secrets[_TOKEN_KEY])


class _Authority:
    """The authority's files; the package ``cryptography`` is loaded only if something has to be signed."""

    def __init__(self, environment: Environment, directory: str, *, may_make: bool) -> None:
        self._certificate_path = f"{directory}/{AUTHORITY_FILE}"
        self._key_path = f"{directory}/{_AUTHORITY_KEY_FILE}"
        self._files = environment.files
        self._loaded: CertificateAuthority | None = None
        if not (self._files.exists(self._certificate_path) and self._files.exists(self._key_path)):
            if not may_make:
                raise SecurityDamaged(f"{self._certificate_path} or {self._key_path} is missing: restore it")
            now_ms = environment.clock.wall_ms()
            self._loaded = CertificateAuthority.make("millbeck local authority", days=AUTHORITY_DAYS, now_ms=now_ms)
            replace_file(self._files, self._key_path, self._loaded.key_pem, is_private=True)
            replace_file(self._files, self._certificate_path, self._loaded.certificate_pem)
        try:
            self.trusted = read_trust_store(self._read(self._certificate_path), password=None)
        except StoreError as error:
            raise SecurityDamaged(f"{self._certificate_path}: {error}") from error

    def load(self) -> CertificateAuthority:
        if self._loaded is None:
            try:
                self._loaded = CertificateAuthority.load(self._read(self._certificate_path), self._read(self._key_path))
            except ValueError as error:
                raise SecurityDamaged(f"{self._key_path}: {error}") from error
        return self._loaded

    def _read(self, path: str) -> bytes:
        return read_file(self._files, path, _FILE_BYTES_MAX) or b""


def _secrets(environment: Environment, directory: str, *, may_make: bool) -> dict[str, str]:
    kept = _read_secrets(environment.files, directory)
    if kept is not None:
        return kept
    path = f"{directory}/{_SECRETS_FILE}"
    if not may_make:
        raise SecurityDamaged(f"{path}, which has the passwords of the users, is missing: restore it")
    made = {name: _new_secret(environment) for name in _SECRETS}
    replace_file(environment.files, path, properties_text(made).encode(), is_private=True)
    return made


def _read_secrets(files: Files, directory: str) -> dict[str, str] | None:
    path = f"{directory}/{_SECRETS_FILE}"
    content = read_file(files, path, _FILE_BYTES_MAX)
    if content is None:
        return None
    try:
        return parse_properties(content.decode("utf-8"))
    except (InvalidConfig, UnicodeDecodeError) as error:
        raise SecurityDamaged(f"{path} cannot be read: {error}") from error


def _new_secret(environment: Environment) -> str:
    number = environment.randomness.below(1 << (8 * _SECRET_BYTES))
    return base64.urlsafe_b64encode(number.to_bytes(_SECRET_BYTES, "big")).decode()


def _node_file(node_id: int) -> str:
    return f"node-{node_id}.pem"


def _still_good(environment: Environment, path: str, trusted: Iterable[Certificate], hosts: Collection[str]) -> bool:
    """Whether a node's certificate was signed by the authority, is valid for long enough, and covers every host."""
    content = read_file(environment.files, path, _FILE_BYTES_MAX)
    if content is None:
        return False
    try:
        certificate = read_key_store(content, store_password=None, key_password=None).chain[0]
    except StoreError:
        return False
    named = {name.partition(":")[2] for name in certificate.alternative_names}
    return (
        certificate.issuer in {each.subject for each in trusted}
        and certificate.days_left(environment.clock.wall_ms()) > RENEWED_BEFORE_DAYS
        and named.issuperset(hosts)
    )


def _entry(
    principal: str,
    kind: ResourceType,
    name: str,
    operation: Operation,
    pattern: PatternType,
    permission: Permission,
) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=WILDCARD,
        operation=operation,
        permission_type=permission,
    )
