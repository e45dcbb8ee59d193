"""Who may call what over HTTP: by password, token, certificate or without any, and how often."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from millbeck.host import real_environment
from millbeck.registry.access import User, hashed_password, hashed_token
from millbeck.registry.rest.authentication import Guard, RequestRate, UsersFile
from millbeck.registry.rest.log_acls import LogAcls
from millbeck.registry.roles import Role
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from tests.unit.registry.rest.in_memory import Answered, Client

USERS = f"""
[users.ci]
password = "{hashed_password("right", bytes(16))}"
tokens = ["{hashed_token("secret")}"]
roles = ["write:orders-", "read:shared-"]

[users.boss]
tokens = ["{hashed_token("all")}"]
roles = ["admin:"]

[users.ANONYMOUS]
roles = ["read:public-"]
"""


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


CI = basic("ci", "right")
BOSS = {"authorization": "Bearer all"}
NOBODY: dict[str, str] = {}


class Guarded(Client):
    def __init__(self, path: Path, text: str = USERS, **more: Any) -> None:
        super().__init__()
        path.write_text(text)
        self.file = UsersFile(real_environment(), str(path))
        self.app.guard = Guard(real_environment(), methods=("BASIC", "BEARER"), realm="r", users=self.file, **more)

    def lookup(self, headers: dict[str, str], subject: str) -> Answered:
        return self("GET", f"/subjects/{subject}/versions/latest", headers=headers)


@pytest.fixture
def client(tmp_path: Path) -> Guarded:
    made = Guarded(tmp_path / "users.toml")
    for subject, kind in (("orders-value", "int"), ("shared-value", "long"), ("public-value", "string")):
        body = {"schema": f'"{kind}"'}
        assert made("POST", f"/subjects/{subject}/versions", body, BOSS).status == 200
    return made


def test_credentials_must_be_right(client: Guarded) -> None:
    for headers in (basic("ci", "wrong"), basic("nobody", "right"), {"authorization": "Bearer x"}):
        answer = client.lookup(headers, "orders-value")
        assert (answer.status, answer.json["error_code"]) == (401, 401)
        assert answer.headers["www-authenticate"] == 'Basic realm="r"'
    for value in ("Basic", "Basic !", "Digest x", "Basic " + base64.b64encode(b"ci").decode(), "\xff"):
        assert client.lookup({"authorization": value}, "orders-value").status == 401
    for _ in range(2):
        assert client.lookup(CI, "orders-value").status == 200
    assert client.lookup({"authorization": "Bearer secret"}, "orders-value").status == 200


ALLOWED: dict[str, tuple[dict[str, str], str, str, Any, int]] = {
    "write where one may": (CI, "POST", "/subjects/orders-new/versions", {"schema": '"int"'}, 200),
    "write where one may read": (CI, "POST", "/subjects/shared-value/versions", {"schema": '"long"'}, 403),
    "read where one may": (CI, "GET", "/subjects/shared-value/versions", None, 200),
    "read elsewhere": (CI, "GET", "/subjects/public-value/versions", None, 403),
    "another spelling": (CI, "GET", "/contexts/./subjects/public-value/versions", None, 403),
    "compare": (CI, "POST", "/compatibility/subjects/orders-value/versions", {"schema": '"int"'}, 200),
    "refer to what one may not read": (
        CI,
        "POST",
        "/subjects/orders-value/versions",
        {"schema": '"X"', "references": [{"name": "X", "subject": "public-value", "version": 1}]},
        403,
    ),
    "delete softly": (CI, "DELETE", "/subjects/orders-value", None, 200),
    "delete permanently": (CI, "DELETE", "/subjects/orders-value?permanent=true", None, 403),
    "settings of a subject": (CI, "PUT", "/config/orders-value", {"compatibility": "NONE"}, 403),
    "settings of a subject, read": (CI, "GET", "/config/orders-value?defaultToGlobal=true", None, 200),
    "settings of another subject, read": (CI, "GET", "/config/public-value?defaultToGlobal=true", None, 403),
    "settings of all, read": (CI, "GET", "/config", None, 200),
    "settings of all": (CI, "PUT", "/config", {"compatibility": "NONE"}, 403),
    "settings of a context": (CI, "PUT", "/contexts/.lab/config", {"compatibility": "NONE"}, 403),
    "the mode of all": (CI, "PUT", "/mode", {"mode": "IMPORT"}, 403),
    "a context": (CI, "DELETE", "/contexts/.lab", None, 403),
    "an id": (CI, "GET", "/schemas/ids/1", None, 200),
    "an id of another subject": (CI, "GET", "/schemas/ids/3", None, 403),
    "the text of an id of another subject": (CI, "GET", "/schemas/ids/3/schema", None, 403),
    "everything": (BOSS, "PUT", "/config", {"compatibility": "NONE"}, 200),
    "public": (NOBODY, "GET", "/schemas/ids/3", None, 200),
    "public only": (NOBODY, "GET", "/schemas/ids/1", None, 403),
    "health": (NOBODY, "GET", "/health", None, 200),
}


@pytest.mark.parametrize(("headers", "method", "target", "body", "status"), ALLOWED.values(), ids=ALLOWED.keys())
def test_roles(client: Guarded, headers: dict[str, str], method: str, target: str, body: Any, status: int) -> None:
    answer = client(method, target, body, headers)
    assert answer.status == status
    if status == 403:
        assert answer.json["error_code"] == 403
        assert answer.json["message"].startswith("Forbidden: ")


def test_lists_have_what_one_may_read(client: Guarded) -> None:
    assert client("GET", "/subjects", headers=CI).json == ["orders-value", "shared-value"]
    assert [each["subject"] for each in client("GET", "/schemas", headers=NOBODY).json] == ["public-value"]
    client("POST", "/subjects/hidden/versions", {"schema": '"int"'}, BOSS)
    assert client("GET", "/schemas/ids/1/subjects", headers=CI).json == ["orders-value"]
    assert len(client("GET", "/schemas/ids/1/versions", headers=BOSS).json) == 2


def test_answers_made_before_are_only_for_those_who_may_read_everything(client: Guarded) -> None:
    for _ in range(2):
        assert client("GET", "/schemas/ids/3", headers=BOSS).status == 200
    assert client("GET", "/schemas/ids/3", headers=CI).status == 403


def test_an_alias_gives_no_other_rights(client: Guarded) -> None:
    client("PUT", "/config/orders-alias", {"alias": "public-value"}, BOSS)
    assert client.lookup(CI, "orders-alias").status == 403


def test_without_credentials_one_is_asked_for_them(tmp_path: Path) -> None:
    client = Guarded(tmp_path / "users.toml", "[users.a]\nroles = []")
    answer = client("GET", "/subjects")
    assert (answer.status, "send credentials" in answer.json["message"]) == (401, True)


def test_users_are_read_again_when_their_file_changes(
    client: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millbeck.registry.rest.authentication._RELOAD_SECONDS", 0.001)

    async def changed(text: str) -> None:
        before, watching = client.file.users, asyncio.create_task(client.app.guard.watch())  # type: ignore[union-attr]
        (tmp_path / "users.toml").write_text(text)
        for _ in range(500):
            await asyncio.sleep(0.002)
            if client.file.users is not before:
                break
        watching.cancel()

    assert client.lookup(CI, "orders-value").status == 200
    asyncio.run(changed(USERS.replace("[users.ci]", "[users.other]")))
    assert client.lookup(CI, "orders-value").status == 401
    asyncio.run(changed("[users"))
    assert client.lookup({"authorization": "Bearer secret"}, "orders-value").status == 200


def acl(
    name: str,
    operation: Operation,
    *,
    who: str = "User:carol",
    host: str = "*",
    prefixed: bool = False,
    deny: bool = False,
) -> AccessControlEntry:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    return AccessControlEntry(
        resource_type=ResourceType.TOPIC,
        resource_name=name,
        pattern_type=pattern,
        principal=who,
        host=host,
        operation=operation,
        permission_type=permission,
    )


ORDERS_READ = acl("orders", Operation.READ)
EVERYTHING = acl("*", Operation.ALL)


@pytest.mark.parametrize(
    ("entries", "role", "subject", "allowed"),
    [
        ([], Role.READ, "orders-value", False),
        ([ORDERS_READ], Role.READ, "orders-value", True),
        ([ORDERS_READ], Role.READ, "orders-key", True),
        ([ORDERS_READ], Role.READ, "orders-eu-value", False),
        ([ORDERS_READ], Role.READ, "", False),
        ([ORDERS_READ], Role.WRITE, "orders-value", False),
        ([acl("orders", Operation.WRITE)], Role.READ, "orders-value", True),
        ([acl("orders", Operation.ALTER)], Role.ADMIN, "orders-value", True),
        ([acl("orders", Operation.DESCRIBE)], Role.READ, "orders-value", False),
        ([acl("ord", Operation.READ, prefixed=True)], Role.READ, "orders-shop.Order", True),
        ([acl("ord", Operation.READ, prefixed=True)], Role.READ, ":.lab:orders-value", False),
        ([EVERYTHING], Role.ADMIN, "", True),
        ([EVERYTHING], Role.ADMIN, ":.lab:orders-value", True),
        ([EVERYTHING, acl("orders", Operation.WRITE, deny=True)], Role.READ, "orders-value", True),
        ([EVERYTHING, acl("orders", Operation.WRITE, deny=True)], Role.ADMIN, "orders-value", False),
        ([EVERYTHING, acl("orders", Operation.ALL, deny=True)], Role.READ, "orders-value", False),
        ([EVERYTHING, acl("orders", Operation.ALL, deny=True)], Role.READ, "", False),
        ([acl("orders", Operation.READ, who="User:bob")], Role.READ, "orders-value", False),
        ([acl("orders", Operation.READ, who="User:*")], Role.READ, "orders-value", True),
        ([acl("orders", Operation.READ, host="10.0.0.1")], Role.READ, "orders-value", False),
        ([EVERYTHING, acl("orders", Operation.READ, host="10.0.0.1", deny=True)], Role.READ, "orders-value", False),
    ],
)
def test_roles_by_the_acls_of_the_log(
    entries: list[AccessControlEntry], role: Role, subject: str, allowed: bool
) -> None:
    acls = LogAcls(real_environment(), {})
    acls.take(tuple(entries))
    assert acls.with_acls(User("carol")).may(role, subject) is allowed


def test_a_user_of_the_file_has_roles_by_acls_too(tmp_path: Path) -> None:
    acls = LogAcls(real_environment(), {})
    client = Guarded(tmp_path / "users.toml", acls=acls)
    for subject in ("orders-value", "bills-value"):
        assert client("POST", f"/subjects/{subject}/versions", {"schema": '"int"'}, BOSS).status == 200
    assert client.lookup(CI, "bills-value").status == 403
    acls.take((acl("bills", Operation.READ, who="User:ci"),))
    assert client.lookup(CI, "bills-value").status == 200
    assert client("GET", "/subjects", headers=CI).json == ["bills-value", "orders-value"]
    acls.take(())
    assert client.lookup(CI, "bills-value").status == 403


def test_a_client_may_send_so_many_requests() -> None:
    rate = RequestRate(2)
    assert [rate.admits("a", 0.0) for _ in range(3)] == [True, True, False]
    assert rate.admits("b", 0.0)
    assert [rate.admits("a", 0.5) for _ in range(2)] == [True, False]
    client = Client()
    client.app.guard = Guard(real_environment(), rate=RequestRate(1))
    assert client("GET", "/subjects").status == 200
    answer = client("GET", "/subjects")
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
