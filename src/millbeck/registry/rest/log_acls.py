"""Reads the ACLs of the log again and again, for the roles of users."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.config import Value
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.registry import acl_roles
from millbeck.registry.access import User
from millbeck.security.acls import AccessControlEntry, AclFilter
from millbeck.security.authorizer import ResourceType

log = logging.getLogger(__name__)

READ_SECONDS: Final = 10.0
_USERS_MAX: Final = 10_000


class LogAcls:
    def __init__(self, environment: Environment, settings: Mapping[str, Value]) -> None:
        self._environment = environment
        self._settings = settings
        self._entries: tuple[AccessControlEntry, ...] = ()
        self._users: dict[User, User] = {}

    def with_acls(self, user: User) -> User:
        """The user with the ACLs as they were read last; nobody has any before the first time."""
        found = self._users.get(user)
        if found is None:
            if len(self._users) >= _USERS_MAX:
                self._users.clear()
            found = self._users[user] = replace(user, acls=acl_roles.of_user(self._entries, user.name))
        return found

    def take(self, entries: tuple[AccessControlEntry, ...]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._users.clear()

    async def watch(self) -> None:
        """Read until cancelled; while that fails, the ACLs stay as they were."""
        failure = ""
        while True:
            try:
                async with Admin(self._settings, environment=self._environment) as admin:
                    while True:
                        self.take(await admin.describe_acls(AclFilter(resource_type=ResourceType.TOPIC)))
                        failure = ""
                        await asyncio.sleep(READ_SECONDS)
            except ApiError as error:
                if str(error) != failure:
                    failure = str(error)
                    log.error("millbeck.roles.from.acls: the ACLs of the log stay as they were: %s", error)
            await asyncio.sleep(READ_SECONDS)
