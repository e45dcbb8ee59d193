from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import click
import pytest

from millbeck.cli.commands.quorum import (
    _voters_must_be_in_the_log,
    check_voters_can_change,
    directory_of,
    lag_time_ms,
    new_controller,
    replica_rows,
    status_of,
)
from millbeck.client.admin.results import FeatureDescription, QuorumDescription, QuorumReplica
from millbeck.host import real_environment
from millbeck.kernel.errors import UnsupportedVersion
from millbeck.kernel.ids import ZERO_UUID
from millbeck.server.config import NodeConfig
from millbeck.storage.properties import MetaProperties, write_meta_properties


def replica(node: int, end: int) -> QuorumReplica:
    return QuorumReplica(
        replica_id=node, directory_id=ZERO_UUID, log_end_offset=end, last_fetch_timestamp=1, last_caught_up_timestamp=1
    )


QUORUM = QuorumDescription(
    leader_id=2,
    leader_epoch=7,
    high_watermark=90,
    voters=(replica(1, 95), replica(2, 100)),
    observers=(replica(3, 80),),
    endpoints={},
)


def test_status() -> None:
    assert status_of(QUORUM, "abc") == {
        "cluster_id": "abc",
        "leader_id": 2,
        "leader_epoch": 7,
        "high_watermark": 90,
        "max_follower_lag": 5,
        "max_follower_lag_time_ms": 0,
        "voters": [1, 2],
        "observers": [3],
    }


def test_each_node_and_how_far_behind_it_is() -> None:
    rows = replica_rows(QUORUM)
    assert [(row["node"], row["lag"], row["status"]) for row in rows] == [
        (1, 5, "follower"),
        (2, 0, "leader"),
        (3, 20, "observer"),
    ]


@pytest.mark.parametrize(("leaders", "followers", "lag_ms"), [(900, 400, 500), (900, -1, -1), (900, 950, 0)])
def test_the_lag_in_time_is_that_of_the_voter_who_was_longest_behind(leaders: int, followers: int, lag_ms: int) -> None:
    voters = (
        replace(replica(1, 95), last_caught_up_timestamp=followers),
        replace(replica(2, 100), last_caught_up_timestamp=leaders),
    )
    assert lag_time_ms(replace(QUORUM, voters=voters)) == lag_ms


def test_times_can_be_told_as_how_long_ago() -> None:
    rows = replica_rows(replace(QUORUM, voters=(replace(replica(1, 5), last_fetch_timestamp=-1),)), now_ms=31)
    assert (rows[0]["last_fetch_ms"], rows[0]["last_caught_up_ms"]) == ("never", "30 ms ago")


def test_voters_that_are_not_in_the_log_can_not_change_and_the_way_out_is_named() -> None:
    said = r"kraft\.version 0\..*millbeck feature upgrade --feature kraft"
    with pytest.raises(click.ClickException, match=said), _voters_must_be_in_the_log():
        raise UnsupportedVersion("The voters cannot be changed with kraft.version 0.")


@pytest.mark.parametrize(("finalized", "may_change"), [({}, False), ({"kraft.version": (1, 1)}, True)])
def test_what_would_be_refused_is_refused_in_a_dry_run_too(
    finalized: dict[str, tuple[int, int]], may_change: bool
) -> None:
    class Answers:
        async def describe_features(self) -> FeatureDescription:
            return FeatureDescription(supported={}, finalized=finalized, finalized_epoch=1)

    def ask() -> None:
        asyncio.run(check_voters_can_change(cast(Any, Answers())))

    if may_change:
        ask()
    else:
        with pytest.raises(UnsupportedVersion, match=r"kraft\.version 0"):
            ask()


def test_one_view_at_a_time(fails: Callable[..., str]) -> None:
    assert "needs --replication" in fails("quorum", "describe", "--human-readable")
    assert "choose one of" in fails("quorum", "--describe", "--status", "--replication")


def test_a_controller_that_votes_is_found_with_its_directory() -> None:
    assert directory_of(QUORUM, 2) == ZERO_UUID
    with pytest.raises(click.ClickException, match="controller 3 is not a voter; the voters are 1, 2"):
        directory_of(QUORUM, 3)


def config_in(directory: Path, **settings: str) -> NodeConfig:
    return NodeConfig(
        {
            "process.roles": "controller",
            "node.id": "7",
            "controller.quorum.bootstrap.servers": "a:1",
            "controller.listener.names": "SECOND,FIRST",
            "listeners": "FIRST://:2001,SECOND://10.0.0.7:2002",
            "advertised.listeners": "FIRST://seven:3001,SECOND://10.0.0.7:2002",
            "listener.security.protocol.map": "FIRST:PLAINTEXT,SECOND:PLAINTEXT",
            "log.dirs": str(directory),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def test_a_new_controller_is_told_of_as_its_file_and_directory_have_it(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="is not formatted"):
        new_controller(config_in(tmp_path))
    meta = MetaProperties(cluster_id="c", node_id=7, directory_id=b"d" * 16)
    write_meta_properties(real_environment().files, str(tmp_path), meta)
    found = new_controller(config_in(tmp_path))
    assert (found.node_id, found.directory_id) == (7, b"d" * 16)
    assert found.endpoints == (("SECOND", "10.0.0.7", 2002), ("FIRST", "seven", 3001))
    with pytest.raises(click.ClickException, match=r"belongs to node 7, but the file has node\.id=8"):
        new_controller(config_in(tmp_path, node_id="8"))


def test_who_is_to_vote_must_be_said(fails: Callable[..., str]) -> None:
    assert "no controller given" in fails("quorum", "add-controller")
    assert "--controller-id" in fails("quorum", "remove-controller")
    assert "--controller-directory-id" in fails(
        "quorum", "remove-controller", "--controller-id", "1", "--controller-directory-id", "nonsense"
    )
