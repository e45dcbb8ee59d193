from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.cli.groups.description import Described
from millbeck.cli.kafka_tools.streams_groups import print_described
from millbeck.client.admin.streams_groups import StreamsGroupDescription, StreamsMemberDescription, StreamsTasks

GROUP = StreamsGroupDescription(
    group_id="words",
    state="Stable",
    epoch=5,
    assignment_epoch=4,
    coordinator_id=1,
    members=(
        StreamsMemberDescription(
            member_id="m-1",
            process_id="p-1",
            client_id="app",
            host="/127.0.0.1",
            epoch=4,
            topology_epoch=0,
            assigned=StreamsTasks(active={"0": (0, 1), "1": (2,)}, standby={"1": (0,)}),
            target=StreamsTasks(active={"0": (0,)}),
        ),
    ),
    source_topics={"0": ("lines",)},
)


class Cluster:
    async def describe_cluster(self) -> Any:
        return SimpleNamespace(nodes=[SimpleNamespace(node_id=1, host="n1", port=9092)])


@pytest.mark.parametrize(
    ("how", "lines"),
    [
        (
            {"members": True},
            ["GROUP MEMBER PROCESS CLIENT-ID ASSIGNMENTS", "words m-1 p-1 app ACTIVE:0:[0,1];1:[2];STANDBY:1:[0];"],
        ),
        (
            {"members": True, "verbose": True},
            [
                "GROUP TARGET-ASSIGNMENT-EPOCH TOPOLOGY-EPOCH MEMBER MEMBER-PROTOCOL MEMBER-EPOCH PROCESS CLIENT-ID "
                "ASSIGNMENTS",
                "words 4 0 m-1 streams 4 p-1 app ACTIVE:0:[0,1];1:[2];STANDBY:1:[0];TARGET-ACTIVE:0:[0];",
            ],
        ),
        (
            {"state": True},
            ["GROUP COORDINATOR (ID) STATE #MEMBERS", "words n1:9092 (1) Stable 1"],
        ),
        (
            {"state": True, "verbose": True},
            [
                "GROUP COORDINATOR (ID) STATE GROUP-EPOCH TARGET-ASSIGNMENT-EPOCH #MEMBERS",
                "words n1:9092 (1) Stable 5 4 1",
            ],
        ),
    ],
)
def test_the_tables_are_those_of_kafkas_tool(
    how: dict[str, bool], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    admin: Any = Cluster()
    found = Described(groups=[], share_groups=[], streams_groups=[GROUP], failed={})
    asyncio.run(print_described(admin, found, **{"members": False, "state": False, "verbose": False} | how))
    assert [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line] == lines
