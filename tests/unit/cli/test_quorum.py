from __future__ import annotations

from collections.abc import Callable

from millbeck.cli.quorum import replica_rows, status_of
from millbeck.client.admin.results import QuorumDescription, QuorumReplica
from millbeck.kernel.ids import ZERO_UUID


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


def test_one_view_at_a_time(fails: Callable[..., str]) -> None:
    assert "choose one of" in fails("quorum", "--describe", "--status", "--replication")
