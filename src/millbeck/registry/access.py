"""Users of the registry and what they may do, from a TOML file.

    [users.ci]
    password = "scrypt:…"                       # from millbeck registry password
    roles = ["write:orders-", "read:"]          # a role, and a prefix of subjects; an empty prefix covers everything

    [users."CN=billing,O=shop"]                 # the subject of a client's certificate
    roles = ["read:orders-", "read::.lab:"]

    [users.ANONYMOUS]                           # requests without credentials
    roles = ["read:public-"]

A role includes those below it: ``read`` is for schemas, settings and compatibility checks, ``write`` also for
registering and soft deletes, ``admin`` also for settings, modes, permanent deletes and contexts.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from millbeck.kernel.errors import InvalidConfig
from millbeck.registry import acl_roles
from millbeck.registry.roles import Role
from millbeck.security.acls import AccessControlEntry

ANONYMOUS: Final = "ANONYMOUS"
SALT_BYTES: Final = 16
_SCRYPT: Final = "scrypt:"
_SHA256: Final = "sha256:"
_HASH_BYTES: Final = 32
_COST: Final = 2**14
_BLOCK_SIZE: Final = 8
_MEMORY_MAX: Final = 64 * 1024 * 1024
_MEMBERS: Final = ("password", "tokens", "roles")


class Grant(NamedTuple):
    role: Role
    prefix: str


@dataclass(frozen=True, slots=True)
class User:
    name: str
    grants: tuple[Grant, ...] = ()
    password: str = field(default="", repr=False)
    """The salted hash of the password; empty if the user has none."""
    acls: tuple[AccessControlEntry, ...] = ()
    """The user's ACLs of the log, if they give roles."""

    def may(self, role: Role, subject: str) -> bool:
        """Whether the user has the role for a subject, given by its qualified name; an empty name means everything."""
        if any(each.role >= role and subject.startswith(each.prefix) for each in self.grants):
            return True
        return acl_roles.may(self.acls, role, subject)


EVERYBODY: Final = User("", (Grant(Role.ADMIN, ""),))
"""The user of all requests if there is no access control."""
NOBODY: Final = User("")


class Users:
    def __init__(self, users: Mapping[str, User], tokens: Mapping[str, User]) -> None:
        self._users = users
        self._tokens = tokens

    @classmethod
    def parse(cls, text: str, path: str) -> Self:
        """Parse the file; raises `InvalidConfig` naming the user."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidConfig(f"{path}: {error}") from None
        listed = content.get("users")
        if not isinstance(listed, dict) or set(content) != {"users"}:
            raise InvalidConfig(f"{path} must have tables [users.NAME], and nothing else")
        users: dict[str, User] = {}
        tokens: dict[str, User] = {}
        for name, members in listed.items():
            where = f"{path}: user {name}"
            if not isinstance(members, dict) or not set(members) <= set(_MEMBERS):
                raise InvalidConfig(f"{where} can have {', '.join(_MEMBERS)}")
            password = members.get("password", "")
            if password and not _is_hash(password, _SCRYPT):
                raise InvalidConfig(f"{where}: the password must be a line from millbeck registry password")
            user = users[name] = User(name, _grants(members.get("roles"), where), password)
            for token in _texts(members.get("tokens", []), f"{where}: tokens"):
                if not _is_hash(token, _SHA256):
                    raise InvalidConfig(f"{where}: a token must be a line from millbeck registry password --token")
                tokens[token] = user
        return cls(users, tokens)

    def named(self, name: str) -> User | None:
        return self._users.get(name)

    def by_token(self, token: str) -> User | None:
        return self._tokens.get(hashed_token(token))


def hashed_password(password: str, salt: bytes) -> str:
    """The password as the file has it. It takes tens of milliseconds, so run it on a thread."""
    made = hashlib.scrypt(
        password.encode(), salt=salt, n=_COST, r=_BLOCK_SIZE, p=1, maxmem=_MEMORY_MAX, dklen=_HASH_BYTES
    )
    return _SCRYPT + base64.b64encode(salt + made).decode()


def is_password(password: str, hashed: str) -> bool:
    """Whether this is the password; takes as long for a user without one."""
    known = base64.b64decode(hashed.removeprefix(_SCRYPT)) if hashed else bytes(SALT_BYTES + _HASH_BYTES)
    made = hashed_password(password, known[:SALT_BYTES])
    return hmac.compare_digest(made.encode(), hashed.encode())


def hashed_token(token: str) -> str:
    """The token as the file has it; tokens are random, so a plain hash does."""
    return _SHA256 + base64.b64encode(hashlib.sha256(token.encode()).digest()).decode()


def _is_hash(text: Any, prefix: str) -> bool:
    if not isinstance(text, str) or not text.startswith(prefix):
        return False
    try:
        found = base64.b64decode(text.removeprefix(prefix), validate=True)
    except ValueError:
        return False
    return len(found) == _HASH_BYTES + (SALT_BYTES if prefix == _SCRYPT else 0)


def _grants(listed: Any, where: str) -> tuple[Grant, ...]:
    found = []
    for text in _texts(listed, f"{where}: roles"):
        name, colon, prefix = text.partition(":")
        if not colon or name.upper() not in Role.__members__:
            known = ", ".join(f"{each.name.lower()}:PREFIX" for each in Role)
            raise InvalidConfig(f"{where}: the role {text!r} must be one of {known}")
        found.append(Grant(Role[name.upper()], prefix))
    return tuple(found)


def _texts(listed: Any, where: str) -> list[str]:
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise InvalidConfig(f"{where} must be a list of texts")
    return listed
