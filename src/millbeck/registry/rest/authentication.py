"""Authentication of HTTP requests: by password, bearer token or client certificate; and how many a client may send.

A password is verified on a thread, and remembered for the requests that follow. The file of users is read again when it
has changed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.types import Scope

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.whole_file import read_whole_file
from millbeck.registry.access import ANONYMOUS, EVERYBODY, NOBODY, User, Users, is_password
from millbeck.registry.rest.config import BEARER
from millbeck.registry.rest.log_acls import LogAcls
from millbeck.security.tls.certificate import parse_certificate
from millbeck.security.tls.der import DerError
from millbeck.security.tls.principal_mapping import NoRuleApplies, PrincipalMapping

log = logging.getLogger(__name__)

CERTIFICATE_KEY: Final = "millbeck.certificate"
"""The key of the client's certificate in the scope of a request."""
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_VERIFIED_MAX: Final = 1000
_VERIFYING_MAX: Final = 32
_CLIENTS_MAX: Final = 10_000
_RELOAD_SECONDS: Final = 5.0
_NO_USERS: Final = Users({}, {})


class Refused(Exception):
    """The request is not answered; ``header`` is an additional header of the response."""

    def __init__(self, status: int, message: str, header: tuple[str, str]) -> None:
        super().__init__(message)
        self.status = status
        self.header = header


class UsersFile:
    """The users in a file, which may change."""

    def __init__(self, environment: Environment, path: str) -> None:
        """Read the file; raises `InvalidConfig`."""
        self._environment = environment
        self._path = path
        self._content = b""
        self.users = self._read() or Users({}, {})

    def _read(self) -> Users | None:
        """The users, or None if the file is unchanged."""
        try:
            content = read_whole_file(self._environment.files, self._path, bytes_max=FILE_BYTES_MAX)
            if content == self._content:
                return None
            users = Users.parse(content.decode(), self._path)
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidConfig(f"millbeck.users.file: {self._path} is not usable: {error}") from error
        self._content = content
        return users

    async def watch(self, on_change: Callable[[], None]) -> None:
        """Read the file again when it has changed, until cancelled; an unusable file leaves the users as they were."""
        failure = ""
        while True:
            await asyncio.sleep(_RELOAD_SECONDS)
            try:
                users = await self._environment.threads.run(self._read)
                failure = ""
            except (InvalidConfig, BlockingIOError) as error:
                if str(error) != failure:
                    failure = str(error)
                    log.error("the users stay as they were: %s", error)
                continue
            if users is not None:
                self.users = users
                on_change()
                log.info("%s was read again", self._path)


class RequestRate:
    """Limits the requests of each client to a number per second, of which one second's number may come at once."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """For each client the requests that it may still send, and the time of this number."""

    def admits(self, client: str, now_s: float) -> bool:
        if not self._per_second:
            return True
        left, since_s = self._left.pop(client, (float(self._per_second), now_s))
        left = min(float(self._per_second), left + (now_s - since_s) * self._per_second)
        is_admitted = left >= 1
        self._left[client] = (left - is_admitted, now_s)
        if len(self._left) > _CLIENTS_MAX:
            self._left.popitem(last=False)
        return is_admitted


class Guard:
    """Decides whose request it is. Without ``users`` and ``acls`` everybody may do everything."""

    def __init__(
        self,
        environment: Environment,
        *,
        methods: tuple[str, ...] = (),
        realm: str = "",
        users: UsersFile | None = None,
        mapping: PrincipalMapping | None = None,
        rate: RequestRate | None = None,
        acls: LogAcls | None = None,
    ) -> None:
        self._environment = environment
        self._methods = methods
        self._realm = realm
        self._file = users
        self._acls = acls
        self._mapping = mapping or PrincipalMapping("DEFAULT")
        self._rate = rate or RequestRate(0)
        self._verified: OrderedDict[bytes, str] = OrderedDict()
        """Names of users by the hash of a header that was verified."""
        self._verifying_count = 0

    async def watch(self) -> None:
        watched = []
        if self._file is not None:
            watched.append(self._file.watch(self._verified.clear))
        if self._acls is not None:
            watched.append(self._acls.watch())
        await asyncio.gather(*watched)

    async def admit(self, scope: Scope) -> User:
        """The user of a request; raises `Refused`."""
        user = EVERYBODY
        if self._file is not None or self._acls is not None:
            user = await self._user(scope, _NO_USERS if self._file is None else self._file.users)
        if self._acls is not None:
            user = self._acls.with_acls(user)
        name = user.name if user.name not in ("", ANONYMOUS) else (scope.get("client") or ("",))[0]
        if not self._rate.admits(name, self._environment.clock.monotonic()):
            message = "Too Many Requests: millbeck.requests.per.second.max is exceeded; try again"
            raise Refused(429, message, ("retry-after", "1"))
        return user

    async def _user(self, scope: Scope, users: Users) -> User:
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if header:
            return await self._by_header(header, users)
        certificate = scope.get(CERTIFICATE_KEY)
        if certificate is not None:
            return self._by_certificate(certificate, users)
        found = users.named(ANONYMOUS)
        if found is None:
            raise self._unauthorized("send credentials" if self._methods else "present a certificate")
        return found

    async def _by_header(self, header: bytes, users: Users) -> User:
        scheme, _, value = header.decode("latin-1").partition(" ")
        if scheme.upper() not in self._methods:
            raise self._unauthorized(f"authentication.method does not have {scheme[:20].upper()}")
        if scheme.upper() == BEARER:
            found = users.by_token(value.strip())
            if found is None:
                raise self._unauthorized("the token is not known")
            return found
        digest = hashlib.sha256(header).digest()
        name = self._verified.get(digest)
        if name is None:
            name = await self._verified_name(value, users)
            self._verified[digest] = name
            if len(self._verified) > _VERIFIED_MAX:
                self._verified.popitem(last=False)
        return users.named(name) or NOBODY

    async def _verified_name(self, value: str, users: Users) -> str:
        try:
            name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
        except ValueError:
            colon = ""
        if not colon:
            raise self._unauthorized("the header is not Basic authentication")
        user = users.named(name)
        if self._verifying_count >= _VERIFYING_MAX:
            raise Refused(429, "Too Many Requests: passwords are being verified; try again", ("retry-after", "1"))
        self._verifying_count += 1
        try:
            is_right = await self._environment.threads.run(is_password, password, "" if user is None else user.password)
        except BlockingIOError:
            raise Refused(429, "Too Many Requests: try again", ("retry-after", "1")) from None
        finally:
            self._verifying_count -= 1
        if not is_right:
            raise self._unauthorized("user or password is not right")
        return name

    def _by_certificate(self, certificate: bytes, users: Users) -> User:
        try:
            name = self._mapping.name_of(parse_certificate(certificate).subject)
        except (DerError, NoRuleApplies) as error:
            raise self._unauthorized(f"the certificate gives no user: {error}") from None
        found = users.named(name)
        if found is None and self._acls is not None:
            return User(name)
        if found is None:
            raise self._unauthorized(f"the user of the certificate, {name}, is not in millbeck.users.file")
        return found

    def _unauthorized(self, reason: str) -> Refused:
        scheme = "Bearer" if self._methods == (BEARER,) else "Basic"
        return Refused(401, f"Unauthorized: {reason}", ("www-authenticate", f'{scheme} realm="{self._realm}"'))
