from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from millbeck.cli.connection_options import (
    DEFAULT_BOOTSTRAP,
    REMEDIES,
    Target,
    client_settings_of,
    error_text,
    reported,
    target_of,
)
from millbeck.cli.profiles import ProfileStore
from millbeck.kernel.errors import NotController, TopicAlreadyExists, by_name


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileStore:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return ProfileStore.of_user()


def test_settings_come_from_file_and_flags_and_flags_win(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id=from-file\nretries=3\n")
    target = target_of("host:1", client_settings_of(str(path), ("client.id=from-flag",)))
    assert target.bootstrap == "host:1"
    assert target.client_settings() == {"client.id": "from-flag", "retries": "3", "bootstrap.servers": "host:1"}


def test_a_file_may_name_the_brokers_unless_the_command_does() -> None:
    settings = {"bootstrap.servers": "file:1"}
    assert target_of(None, settings).bootstrap == "file:1"
    assert target_of("flag:1", settings).bootstrap == "flag:1"
    assert target_of(None, {}).bootstrap == DEFAULT_BOOTSTRAP


def test_the_current_profile_is_used_where_no_brokers_are_named(profiles: ProfileStore) -> None:
    profiles.save("prod", {"bootstrap.servers": "prod:1", "client.id": "kept", "ssl.key.password": "x"}, replaces=False)
    profiles.use("prod")
    target = target_of(None, {"client.id": "given"})
    assert (target.bootstrap, target.profile) == ("prod:1", "prod")
    assert target.settings == {"client.id": "given", "ssl.key.password": "x"}


@pytest.mark.parametrize(
    ("bootstrap", "settings"), [("other:1", {}), (None, {"bootstrap.servers": "other:1"})], ids=["command", "settings"]
)
def test_the_current_profile_s_secrets_are_not_for_other_brokers(
    profiles: ProfileStore, bootstrap: str | None, settings: dict[str, str]
) -> None:
    profiles.save("prod", {"bootstrap.servers": "prod:1", "ssl.key.password": "x"}, replaces=False)
    profiles.use("prod")
    assert target_of(bootstrap, settings) == Target(bootstrap="other:1")


def test_a_profile_that_is_named_comes_before_the_environment_s_brokers(profiles: ProfileStore) -> None:
    profiles.save("prod", {"bootstrap.servers": "prod:1", "client.id": "kept"}, replaces=False)
    assert target_of("environment:1", {}, profile="prod").bootstrap == "prod:1"
    flag = target_of("flag:1", {}, profile="prod", overrides_profile=True)
    assert (flag.bootstrap, flag.settings) == ("flag:1", {"client.id": "kept"})


def test_a_command_s_own_settings_give_way_to_the_user_s() -> None:
    target = Target(bootstrap="host:1", settings={"acks": "1"})
    assert target.client_settings(acks="all", linger_ms="0")["acks"] == "1"
    assert target.client_settings(acks="all", linger_ms="0")["linger.ms"] == "0"


@pytest.mark.parametrize("properties", [("novalue",), ("=x",)])
def test_settings_that_are_none_are_refused(properties: tuple[str, ...]) -> None:
    with pytest.raises(click.ClickException, match="client settings"):
        client_settings_of(None, properties)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"a=1\xff\xfe")
    with pytest.raises(click.ClickException, match=r"binary: not a text file: byte 3 is not UTF-8"):
        client_settings_of(str(path), ())


def test_a_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(
        click.ClickException, match=r"^client settings: nowhere\.properties: No such file or directory$"
    ):
        client_settings_of("nowhere.properties", ())


def test_an_error_carries_kafkas_name() -> None:
    assert error_text(NotController("ask another")) == "ask another (NOT_CONTROLLER)"


def test_an_error_says_what_to_do_where_something_helps() -> None:
    assert error_text(TopicAlreadyExists("it is there")).startswith(
        "it is there (TOPIC_ALREADY_EXISTS): change it with millbeck topic alter"
    )
    assert set(REMEDIES) <= set(by_name)
    with pytest.raises(click.ClickException, match="TOPIC_ALREADY_EXISTS"), reported():
        raise TopicAlreadyExists
    with pytest.raises(click.ClickException, match="no route"), reported():
        raise OSError("no route")


def test_a_closed_pipe_is_left_to_whoever_prints() -> None:
    with pytest.raises(BrokenPipeError), reported():
        raise BrokenPipeError


def test_nobody_there_is_said_soon_and_how_to_name_somebody(fails: Callable[..., str]) -> None:
    message = fails("topic", "list", "--bootstrap-server", "127.0.0.1:1")
    assert message.startswith("no broker reached at 127.0.0.1:1")
    assert "MILLBECK_BOOTSTRAP" in message


def test_the_brokers_come_from_the_environment(fails: Callable[..., str]) -> None:
    assert "at 127.0.0.1:2" in fails("topic", "list", MILLBECK_BOOTSTRAP="127.0.0.1:2")


def test_who_cannot_reach_a_profile_s_brokers_is_told_which_profile(
    profiles: ProfileStore, fails: Callable[..., str]
) -> None:
    profiles.save("gone", {"bootstrap.servers": "127.0.0.1:3"}, replaces=False)
    profiles.use("gone")
    base = str(profiles.directory.parent)
    message = fails("topic", "list", XDG_CONFIG_HOME=base)
    assert "at 127.0.0.1:3" in message
    assert "the profile gone is in use" in message
    assert "at 127.0.0.1:2" in fails("topic", "list", "-b", "127.0.0.1:2", XDG_CONFIG_HOME=base)
    assert "at 127.0.0.1:3" in fails(
        "topic", "list", XDG_CONFIG_HOME=base, MILLBECK_BOOTSTRAP="127.0.0.1:2", MILLBECK_PROFILE="gone"
    )


def test_an_address_that_is_none_is_named(fails: Callable[..., str]) -> None:
    assert "nonsense" in fails("topic", "list", "-b", "nonsense")
