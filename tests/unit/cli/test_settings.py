from __future__ import annotations

from pathlib import Path

import click
import pytest

from millbeck.cli.settings import embedded_config, node_config

DEFAULTS = {"log.dirs": "logs", "listeners": "PLAINTEXT://127.0.0.1:9092", "num.partitions": "1"}


def file_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "server.properties"
    path.write_text(text)
    return str(path)


def test_flags_beat_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, "log.dirs=logs\nnum.partitions=2\nnode.id=1\nbroker.rack=file\n")
    environment = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_BROKER_RACK": "environment"}
    config = node_config(path, ["num.partitions=4"], environment)
    assert config.topic_defaults.num_partitions == 4
    assert config.node.broker_rack == "environment"


def test_an_unknown_key_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path, "log.dirs=logs\nno.such.key=1\nlog.retention.ms=5\n")
    node_config(path, [], {})
    assert (
        capsys.readouterr().err == f"millbeck: {path}: no.such.key is not a setting of this release and has no effect\n"
    )


WRONG = {
    "a value": ("num.partitions=many", "num.partitions"),
    "zookeeper": ("zookeeper.connect=localhost:2181", "process.roles"),
    "an old format": ("log.message.format.version=0.9", "metadata.version"),
    "an escape": ("a=\\u12", "line 2"),
}


@pytest.mark.parametrize(("line", "named"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named(tmp_path: Path, line: str, named: str) -> None:
    with pytest.raises(click.ClickException, match=named):
        node_config(file_of(tmp_path, f"log.dirs=logs\n{line}\n"), [], {})


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(click.ClickException, match="No such file"):
        node_config("nowhere.properties", [], {})


def test_embedded_defaults_give_way_unless_the_command_line_said_them() -> None:
    environment = {"KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:1", "KAFKA_NUM_PARTITIONS": "2"}
    config = embedded_config(DEFAULTS, ["num.partitions=3"], environment)
    assert config.client_addresses()[0].port == 1
    assert config.topic_defaults.num_partitions == 3
    config = embedded_config(DEFAULTS, [], environment, given=["listeners"])
    assert config.client_addresses()[0].port == 9092
    assert config.topic_defaults.num_partitions == 2


def test_a_flag_that_is_no_pair() -> None:
    with pytest.raises(click.UsageError, match="--set: expected key=value"):
        embedded_config(DEFAULTS, ["num.partitions"], {})


def test_an_unknown_key_on_the_command_line_is_refused_and_the_nearest_named(tmp_path: Path) -> None:
    refused = r"--set: num\.partitons is not a setting of this release, did you mean num\.partitions\?"
    with pytest.raises(click.UsageError, match=refused):
        embedded_config(DEFAULTS, ["num.partitons=3"], {})
    with pytest.raises(click.UsageError, match=refused):
        node_config(file_of(tmp_path, "log.dirs=logs\n"), ["num.partitons=3"], {})
    with pytest.raises(click.UsageError, match="--set: expected key=value"):
        node_config(file_of(tmp_path, "log.dirs=logs\n"), ["num.partitions"], {})


SECRETS = "key=s3cret\nparts=4\n"
PROVIDER = (
    "config.providers=file\nconfig.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
)


def test_a_file_takes_values_from_config_providers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secrets").write_text(SECRETS)
    variables = f"delegation.token.secret.key=${{file:{tmp_path}/secrets:key}}\n"
    path = file_of(tmp_path, f"log.dirs=logs\n{PROVIDER}{variables}num.partitions=${{file:{tmp_path}/secrets:parts}}\n")
    config = node_config(path, [], {})
    assert config.token_secret == "s3cret"
    assert config.topic_defaults.num_partitions == 4
    assert capsys.readouterr().err == "", "the providers' own settings are known"
    assert "s3cret" not in repr(config.tokens)


def test_a_secret_is_not_in_the_message_about_it(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text(SECRETS)
    path = file_of(tmp_path, f"log.dirs=logs\n{PROVIDER}num.partitions=${{file:{tmp_path}/secrets:key}}\n")
    with pytest.raises(click.ClickException) as caught:
        node_config(path, [], {})
    assert "num.partitions" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_missing_secret_stops_the_start(tmp_path: Path) -> None:
    path = file_of(tmp_path, f"log.dirs=logs\n{PROVIDER}delegation.token.secret.key=${{file:/none:key}}\n")
    with pytest.raises(click.ClickException, match=r"delegation.token.secret.key: \$\{file:/none:key\} cannot be read"):
        node_config(path, [], {})


def test_providers_are_named_in_a_file_only(tmp_path: Path) -> None:
    path = file_of(tmp_path, "log.dirs=logs\n")
    for flags, environment in (["config.providers=file"], {}), ([], {"KAFKA_CONFIG_PROVIDERS": "file"}):
        with pytest.raises(click.ClickException, match="in the properties file that names them, and nowhere else"):
            node_config(path, flags, environment)


def test_the_stricter_profile_by_a_flag(tmp_path: Path) -> None:
    path = file_of(tmp_path, "log.dirs=logs\nlisteners=PLAINTEXT://:9092\n")
    with pytest.raises(click.ClickException, match="listeners: PLAINTEXT is PLAINTEXT, and not on loopback"):
        node_config(path, ["millbeck.hardened=true"], {})
    local = node_config(path, ["millbeck.hardened=true", "listeners=PLAINTEXT://localhost:9092"], {})
    assert ("max.connections", "10000", "2147483647") in local.hardened_changes
    assert node_config(path, [], {}).hardened_changes == ()
