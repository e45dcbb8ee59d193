from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from millbeck.cli.connecting import DEFAULT_BOOTSTRAP, Target, error_text, reported, target_of
from millbeck.kernel.errors import TopicAlreadyExists


def test_settings_come_from_file_and_flags_and_flags_win(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("client.id=from-file\nretries=3\n")
    target = target_of("host:1", str(path), ("client.id=from-flag",))
    assert target.bootstrap == "host:1"
    assert target.client_settings() == {"client.id": "from-flag", "retries": "3", "bootstrap.servers": "host:1"}


def test_a_file_may_name_the_brokers_unless_the_command_does(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=file:1\n")
    assert target_of(DEFAULT_BOOTSTRAP, str(path), ()).bootstrap == "file:1"
    assert target_of("flag:1", str(path), ()).bootstrap == "flag:1"


def test_a_command_s_own_settings_give_way_to_the_user_s() -> None:
    target = Target(bootstrap="host:1", settings={"acks": "1"})
    assert target.client_settings(acks="all", linger_ms="0")["acks"] == "1"
    assert target.client_settings(acks="all", linger_ms="0")["linger.ms"] == "0"


@pytest.mark.parametrize("properties", [("novalue",), ("=x",)])
def test_settings_that_are_none_are_refused(properties: tuple[str, ...]) -> None:
    with pytest.raises(click.ClickException, match="client settings"):
        target_of("host:1", None, properties)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"a=1\xff\xfe")
    with pytest.raises(click.ClickException, match=r"binary: not a text file: byte 3 is not UTF-8"):
        target_of("host:1", str(path), ())


def test_a_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(
        click.ClickException, match=r"^client settings: nowhere\.properties: No such file or directory$"
    ):
        target_of("host:1", "nowhere.properties", ())


def test_an_error_carries_kafkas_name() -> None:
    assert error_text(TopicAlreadyExists("it is there")) == "it is there (TOPIC_ALREADY_EXISTS)"
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


def test_an_address_that_is_none_is_named(fails: Callable[..., str]) -> None:
    assert "nonsense" in fails("topic", "list", "-b", "nonsense")
