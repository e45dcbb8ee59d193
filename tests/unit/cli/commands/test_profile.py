from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.cli.commands.profile import is_secret

PROD = ("-b", "prod-1:9093,prod-2:9093", "-X", "security.protocol=SSL", "-X", "ssl.key.password=hunter2")


@pytest.fixture
def profile(run: Callable[..., Result], tmp_path: Path) -> Callable[..., str]:
    """Runs ``millbeck profile`` and returns what it prints."""

    def invoke(*arguments: str) -> str:
        result = run("profile", *arguments, XDG_CONFIG_HOME=str(tmp_path))
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


@pytest.fixture
def refused(fails: Callable[..., str], tmp_path: Path) -> Callable[..., str]:
    return lambda *arguments: fails("profile", *arguments, XDG_CONFIG_HOME=str(tmp_path))


def test_the_profile_that_was_created_last_is_the_current_one(profile: Callable[..., str]) -> None:
    profile("create", "local", "-b", "127.0.0.1:9092")
    assert profile("create", "prod", *PROD) == "using profile prod: prod-1:9093,prod-2:9093\n"
    profile("create", "staging", "-b", "staging:9092", "--no-use")
    rows = json.loads(profile("list", "-o", "json"))
    assert [(row["name"], row["current"]) for row in rows] == [("local", False), ("prod", True), ("staging", False)]
    profile("use", "local")
    assert json.loads(profile("show", "-o", "json"))["name"] == "local"
    profile("use", "--none")
    assert not any(row["current"] for row in json.loads(profile("list", "-o", "json")))


def test_secrets_are_kept_for_the_user_alone_and_never_shown(profile: Callable[..., str], tmp_path: Path) -> None:
    profile("create", "prod", *PROD)
    (path,) = tmp_path.rglob("prod.properties")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "hunter2" in path.read_text()
    for shown in (profile("show"), profile("show", "prod", "-o", "json"), profile("show", "-o", "yaml")):
        assert "[hidden]" in shown
        assert "hunter2" not in shown
        assert "SSL" in shown


def test_a_profile_that_others_can_read_is_refused(
    profile: Callable[..., str], refused: Callable[..., str], tmp_path: Path
) -> None:
    profile("create", "prod", *PROD)
    (path,) = tmp_path.rglob("prod.properties")
    path.chmod(0o644)
    assert "other users can read" in refused("show", "prod")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("sasl.jaas.config", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("ssl.keystore.key", True),
        ("security.protocol", False),
        ("client.id", False),
    ],
)
def test_what_is_secret(key: str, expected: bool) -> None:
    assert is_secret(key) == expected


def test_the_current_profile_is_deleted(profile: Callable[..., str], refused: Callable[..., str]) -> None:
    profile("create", "prod", *PROD)
    profile("delete", "prod")
    assert "no profile is in use" in refused("show")


WRONG = {
    "no brokers": (("create", "x"), "give --bootstrap-server"),
    "a name with a path": (("create", "../x", "-b", "a:1"), "is not a valid profile name"),
    "a setting that is none": (("create", "x", "-b", "a:1", "-X", "client.idd=1"), "did you mean client.id?"),
    "a profile that is there": (("create", "prod", "-b", "a:1"), "use --force to replace it"),
    "a mistyped profile": (("use", "prd"), "there is no profile prd, did you mean prod?"),
    "a profile that is not there": (("show", "zzz"), "millbeck profile create zzz -b HOST:PORT"),
    "no name": (("use",), "no profile given"),
    "a name and none": (("use", "prod", "--none"), "--none takes no name"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said(
    profile: Callable[..., str], refused: Callable[..., str], arguments: tuple[str, ...], message: str
) -> None:
    profile("create", "prod", *PROD)
    assert message in refused(*arguments)
