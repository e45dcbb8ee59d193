"""Users, their roles and passwords, and files that are not usable."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.registry.access import EVERYBODY, NOBODY, Users, hashed_password, hashed_token, is_password
from millbeck.registry.roles import Role

SALT = b"0123456789abcdef"
HASHED = hashed_password("right", SALT)


def users(text: str) -> Users:
    return Users.parse(text, "users.toml")


def test_a_role_includes_those_below_it_and_covers_a_prefix() -> None:
    found = users('[users.ci]\nroles = ["write:orders-", "read::.lab:"]').named("ci")
    assert found is not None
    expected = {
        (Role.READ, "orders-value"): True,
        (Role.WRITE, "orders-value"): True,
        (Role.ADMIN, "orders-value"): False,
        (Role.READ, "payments-value"): False,
        (Role.READ, ":.lab:orders-value"): True,
        (Role.WRITE, ":.lab:orders-value"): False,
        (Role.READ, ""): False,
    }
    assert {asked: found.may(*asked) for asked in expected} == expected
    assert EVERYBODY.may(Role.ADMIN, "")
    assert not NOBODY.may(Role.READ, "orders-value")


def test_passwords_and_tokens_are_kept_as_hashes() -> None:
    text = f'[users.ci]\npassword = "{HASHED}"\ntokens = ["{hashed_token("secret")}"]\nroles = ["read:"]'
    found = users(text)
    user = found.named("ci")
    assert user is not None
    assert is_password("right", user.password)
    assert not is_password("wrong", user.password)
    assert not is_password("", "")
    assert found.by_token("secret") == user
    assert found.by_token("other") is None
    assert HASHED not in repr(user)


UNUSABLE = {
    "no TOML": ("[users", "users.toml"),
    "no users": ("x = 1", "tables"),
    "something else": ("[users]\n[groups]", "nothing else"),
    "another member": ("[users.a]\nrole = []", "user a can have password, tokens, roles"),
    "no roles": ("[users.a]", "roles must be a list"),
    "a role that does not exist": ('[users.a]\nroles = ["owner:x"]', "one of read:PREFIX, write:PREFIX, admin:PREFIX"),
    "a role without a prefix": ('[users.a]\nroles = ["read"]', "'read' must be"),
    "a plain password": ('[users.a]\npassword = "x"\nroles = []', "millbeck registry password"),
    "a short hash": ('[users.a]\npassword = "scrypt:AAAA"\nroles = []', "millbeck registry password"),
    "a plain token": ('[users.a]\ntokens = ["x"]\nroles = []', "password --token"),
}


@pytest.mark.parametrize(("text", "message"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_that_is_not_usable_names_the_user(text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        users(text)
