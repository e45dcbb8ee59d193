"""A node with TLS, SASL and ACLs for tests: creating users and granting permissions takes milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from millbeck.host import real_environment
from millbeck.security.acls import WILDCARD, AccessControlEntry, AclFilter
from millbeck.security.authorizer import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from millbeck.server.local.client_configs import MECHANISM, ClientConfigs
from millbeck.server.local.secured import ADMIN, APP, application_acls, read_secured
from millbeck.testing.broker_process import Broker

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

ITERATIONS = 4096
"""The minimum of SCRAM iterations, sufficient because the passwords are random."""


class SecureBroker(Broker):
    """A node whose clients connect by TLS and authenticate by SCRAM. `admin` may do everything; `app` may use every
    topic, group and transactional id.

    The client configurations of a user are its attributes ``librdkafka``, ``java`` and ``kafka_python``.
    """

    def __init__(self, settings: Mapping[str, str], directory: Path | None = None) -> None:
        super().__init__(settings, directory, is_secure=True)

    @property
    def admin(self) -> ClientConfigs:
        return self._user(ADMIN)

    @property
    def app(self) -> ClientConfigs:
        return self._user(APP)

    @property
    def authority_file(self) -> str:
        """The PEM file of the certificate authority that signed the node's certificate."""
        return self.admin.authority_file

    def create_user(self, name: str, *, may_use_everything: bool = False) -> ClientConfigs:
        """Create a user with a random password. It has no permissions, or with ``may_use_everything`` those of `app`.

        Raises `ApiError`.
        """
        from millbeck.client.admin.users import NewCredential
        from millbeck.security.sasl.scram_messages import BY_NAME

        password = uuid4().hex
        credential = NewCredential(mechanism=BY_NAME[MECHANISM], password=password, iterations=ITERATIONS)

        async def create(admin: Admin) -> None:
            (await admin.alter_users({name: credential})).all()
            if may_use_everything:
                (await admin.create_acls(application_acls(f"User:{name}"))).all()

        self._ask(create)
        return ClientConfigs(user=name, password=password, bootstrap=self.bootstrap, authority_file=self.authority_file)

    def delete_user(self, name: str) -> None:
        """Delete a user and its ACLs. Raises `ApiError`."""
        from millbeck.client.admin.users import DeletedCredential
        from millbeck.security.sasl.scram_messages import BY_NAME

        async def delete(admin: Admin) -> None:
            (await admin.alter_users({name: DeletedCredential(mechanism=BY_NAME[MECHANISM])})).all()
            (await admin.delete_acls([AclFilter(principal=f"User:{name}")])).all()

        self._ask(delete)

    def allow(self, user: str, *operations: str, **resources: str) -> None:
        """Allow operations, by Kafka's names, on resources: ``allow("alice", "READ", topic="orders", group="*")``.

        A resource is a ``topic``, a ``group``, a ``transactional_id`` or the ``cluster`` (any name); a name that ends
        with ``*`` is a prefix. Raises `ApiError`, and ValueError for an unknown operation or resource type.
        """
        self._create_acls(_entries(user, operations, resources, Permission.ALLOW))

    def deny(self, user: str, *operations: str, **resources: str) -> None:
        """Deny operations, like `allow`; a denial takes precedence."""
        self._create_acls(_entries(user, operations, resources, Permission.DENY))

    def _create_acls(self, entries: list[AccessControlEntry]) -> None:
        async def create(admin: Admin) -> None:
            (await admin.create_acls(entries)).all()

        self._ask(create)

    def _user(self, name: str) -> ClientConfigs:
        return read_secured(real_environment().files, str(self.directory)).clients(name, self.bootstrap)

    def _ask(self, work: Callable[[Admin], Awaitable[None]]) -> None:
        """Run a request in a thread, because the test may be inside an event loop."""
        from millbeck.client.admin import Admin

        async def main() -> None:
            async with Admin(self.admin.java) as admin:
                await work(admin)

        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, main()).result()


def _entries(
    user: str, operations: Iterable[str], resources: Mapping[str, str], permission: Permission
) -> list[AccessControlEntry]:
    entries = []
    for kind, name in resources.items():
        if kind.upper() not in ResourceType.__members__:
            raise ValueError(f"{kind}: a resource must be a topic, group, transactional_id or cluster")
        is_prefix = name.endswith("*") and name != WILDCARD
        resource_type = ResourceType[kind.upper()]
        for operation in operations:
            if operation.upper() not in Operation.__members__:
                raise ValueError(f"{operation} is not an operation of Kafka, such as READ, WRITE or DESCRIBE")
            entries.append(
                AccessControlEntry(
                    resource_type=resource_type,
                    resource_name=CLUSTER_NAME
                    if resource_type is ResourceType.CLUSTER
                    else name.removesuffix("*")
                    if is_prefix
                    else name,
                    pattern_type=PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
                    principal=f"User:{user}",
                    host=WILDCARD,
                    operation=Operation[operation.upper()],
                    permission_type=permission,
                )
            )
    return entries
