from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.host import real_environment
from millbeck.kernel.ids import parse_uuid
from millbeck.metadata.records import UserScramCredentialRecord
from millbeck.security.sasl.scram_messages import ScramMechanism, encode, salted_password, scram_keys
from millbeck.server.metadata.metadata_files import read_bootstrap

Run = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/one,{tmp_path}/two\nnode.id=7\n")
    return str(path)


def test_directories_are_formatted_and_described(run: Run, config: str, tmp_path: Path) -> None:
    cluster = run("storage", "random-uuid").stdout.strip()
    formatted = run("storage", "format", "-c", config, "-t", cluster, "--standalone")
    assert formatted.exit_code == 0
    assert formatted.stdout.splitlines() == [
        f"formatted {tmp_path}/{name} with metadata.version 4.3-IV0, cluster {cluster}" for name in ("one", "two")
    ]
    rows = json.loads(run("storage", "info", "-c", config, "-o", "json").stdout)
    assert [(row["directory"], row["state"], row["cluster_id"], row["node_id"]) for row in rows] == [
        (f"{tmp_path}/{name}", "formatted", cluster, 7) for name in ("one", "two")
    ]
    assert all(len(row["directory_id"]) == 22 for row in rows)


def test_formatting_twice_needs_to_be_meant(run: Run, fails: Callable[..., str], config: str) -> None:
    assert run("storage", "format", "-c", config).exit_code == 0
    assert "already formatted" in fails("storage", "format", "-c", config)
    assert run("storage", "format", "-c", config, "--ignore-formatted").exit_code == 0


def test_a_formatted_directory_is_left_as_it_is_and_keeps_its_cluster(
    run: Run, fails: Callable[..., str], config: str, tmp_path: Path
) -> None:
    first, other = (run("storage", "random-uuid").stdout.strip() for _ in range(2))
    run("storage", "format", "-c", config, "-t", first)
    path = tmp_path / "more.properties"
    path.write_text(f"log.dirs={tmp_path}/one,{tmp_path}/three\nmetadata.log.dir={tmp_path}/four\nnode.id=7\n")
    refused = fails("storage", "format", "-c", str(path), "-t", other, "--ignore-formatted")
    assert refused == f"{tmp_path}/one belongs to cluster {first}, but the cluster id given is {other}"
    assert not (tmp_path / "three").exists()
    shown = run("storage", "format", "-c", str(path), "-t", first, "--ignore-formatted").stdout.splitlines()
    assert shown == [
        f"skipped: {tmp_path}/one is already formatted for cluster {first}",
        f"formatted {tmp_path}/three with metadata.version 4.3-IV0, cluster {first}",
        f"formatted {tmp_path}/four with metadata.version 4.3-IV0, cluster {first}",
    ]


def test_directories_of_two_clusters_or_of_another_node_are_an_error(run: Run, config: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        path = tmp_path / f"{name}.properties"
        path.write_text(f"log.dirs={tmp_path}/{name}\nnode.id=7\n")
        run("storage", "format", "-c", str(path))
    shown = run("storage", "info", "-c", config)
    assert shown.exit_code == 1
    assert len(shown.stdout.splitlines()) == 3
    assert f"{tmp_path}/two belongs to cluster " in shown.stderr
    path.write_text(f"log.dirs={tmp_path}/two\nnode.id=8\n")
    shown = run("storage", "info", "-c", str(path))
    assert shown.exit_code == 1
    assert "belongs to node 7, but node.id is 8" in shown.stderr


def test_what_is_not_formatted_is_said_to_be(run: Run, config: str, tmp_path: Path) -> None:
    shown = run("storage", "info", "-c", config)
    assert shown.exit_code == 1
    assert [line.split()[:3] for line in shown.stdout.splitlines()[1:]] == [
        [f"{tmp_path}/{name}", "not", "formatted"] for name in ("one", "two")
    ]


def test_ids_and_releases_are_checked(fails: Callable[..., str], config: str) -> None:
    assert "is not a uuid" in fails("storage", "format", "-c", config, "-t", "short")
    assert fails("storage", "format", "-c", config, "-r", "0.9")


def test_voters_are_in_the_log_only_where_the_release_has_that(
    run: Run, fails: Callable[..., str], config: str, tmp_path: Path
) -> None:
    refused = fails("storage", "format", "-c", config, "--standalone", "-r", "3.8-IV0")
    assert "from 3.9-IV0 on" in refused
    assert run("storage", "format", "-c", config, "-r", "3.8-IV0").exit_code == 0
    assert not (tmp_path / "one" / "__cluster_metadata-0").exists()


def test_a_new_id_each_time(run: Run) -> None:
    ids = {run("storage", "random-uuid").stdout.strip() for _ in range(3)}
    assert len(ids) == 3
    assert all(len(parse_uuid(each)) == 16 for each in ids)


def test_users_are_there_from_the_beginning_and_nothing_secret_is_printed(
    run: Run, config: str, tmp_path: Path
) -> None:
    text = "SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=5000]"
    other = "SCRAM-SHA-512=[name=bob,password=bob-secret]"
    formatted = run("storage", "format", "-c", config, "--add-scram", text, "-S", other)
    assert formatted.exit_code == 0
    written = read_bootstrap(real_environment().files, str(tmp_path / "one"))
    users = {record.name: record for record in written if isinstance(record, UserScramCredentialRecord)}
    assert [(each.mechanism, each.iterations) for each in users.values()] == [(1, 5000), (2, 4096)]
    alice = users["alice"]
    salted = salted_password(ScramMechanism.SHA_256, "alice-secret", alice.salt, 5000)
    assert (alice.stored_key, alice.server_key) == scram_keys(ScramMechanism.SHA_256, salted)
    assert len(alice.salt) == 20
    assert alice.salt != users["bob"].salt
    # Kafka prints salt and keys here.
    for secret in ("alice-secret", "bob-secret", encode(alice.salt), encode(alice.stored_key), alice.stored_key.hex()):
        assert secret not in formatted.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SCRAM-SHA-256=[password=alice-secret]", "--add-scram: name is missing"),
        ("SCRAM-SHA-1=[name=alice,password=alice-secret]", "--add-scram: SCRAM-SHA-1 is not one of SCRAM-SHA-256"),
    ],
)
def test_a_user_that_is_not_understood(
    fails: Callable[..., str], config: str, tmp_path: Path, text: str, said: str
) -> None:
    refused = fails("storage", "format", "-c", config, "--add-scram", text)
    assert said in refused
    assert "alice-secret" not in refused
    assert not (tmp_path / "one").exists()


def test_users_need_a_metadata_version_that_has_them(fails: Callable[..., str], config: str) -> None:
    text = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
    refused = fails("storage", "format", "-c", config, "-r", "3.5-IV1", "--add-scram", text)
    assert refused == "--add-scram: users need metadata.version 3.5-IV2 or newer"
