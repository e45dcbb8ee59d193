"""A directory is made ready once, for one node of one cluster."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from millbeck import simulation
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import parse_uuid
from millbeck.metadata.features import VOTERS_IN_LOG_FROM
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import AlreadyFormatted, NotFormatted, check_formatted, format_directories
from millbeck.server.local.initial_quorum import InitialQuorum
from millbeck.server.metadata.metadata_files import read_bootstrap
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.randomness import SimRandomness
from millbeck.storage.properties import read_meta_properties


class Clock:
    def wall_ms(self) -> int:
        return 1_700_000_000_000


class World:
    def __init__(self) -> None:
        self.disk = SimDisk(random.Random(1))
        self.restart()

    def restart(self) -> None:
        self.environment = Environment(
            clock=cast(Any, Clock()),
            randomness=SimRandomness(random.Random(2)),
            files=self.disk.mount(),
            network=cast(Any, SimpleNamespace(host_name=lambda: "here")),
            threads=cast(Any, None),
            workers=cast(Any, None),
        )

    def format(self, directories: str = "/a,/b", node_id: int = 1, **options: Any) -> str:
        return format_directories(self.environment, config(directories, node_id), **options)

    def check(self, directories: str = "/a,/b", node_id: int = 1) -> str:
        return check_formatted(self.environment, config(directories, node_id))


def config(directories: str, node_id: int = 1, **more: str) -> NodeConfig:
    return NodeConfig({"log.dirs": directories, "node.id": str(node_id), **more})


def test_every_directory_is_ready_and_durable_afterwards() -> None:
    world = World()
    cluster_id = world.format()
    parse_uuid(cluster_id)
    world.disk.power_loss(survival=0.0)
    world.restart()
    assert world.check() == cluster_id
    files = world.environment.files
    metas = [read_meta_properties(files, directory) for directory in ("/a", "/b")]
    ids = [meta.directory_id for meta in metas if meta is not None]
    assert len(set(ids)) == 2
    assert read_bootstrap(files, "/a") != []
    assert not files.exists("/b/bootstrap.checkpoint")


def test_a_given_cluster_id_is_used() -> None:
    world = World()
    assert world.format(cluster_id="MkU3OEVBNTcwNTJENDM2Qg") == "MkU3OEVBNTcwNTJENDM2Qg"
    assert world.check() == "MkU3OEVBNTcwNTJENDM2Qg"


def test_formatting_twice_is_refused_or_changes_nothing() -> None:
    world = World()
    cluster_id = world.format()
    before = read_meta_properties(world.environment.files, "/a")
    with pytest.raises(AlreadyFormatted, match="/a"):
        world.format()
    assert world.format(ignore_formatted=True) == cluster_id
    assert read_meta_properties(world.environment.files, "/a") == before


def test_a_new_directory_joins_the_cluster_of_the_others() -> None:
    world = World()
    cluster_id = world.format("/a")
    assert world.format("/a,/b", ignore_formatted=True) == cluster_id
    assert world.check("/a,/b") == cluster_id


def test_one_directory_that_is_not_formatted_may_be_a_disk_that_is_not_mounted() -> None:
    world = World()
    world.format("/b")
    with pytest.raises(NotFormatted, match="/a is not formatted, but /b is: if its disk is not mounted, mount it;"):
        world.check("/a,/b")


def test_what_is_not_this_nodes_is_named() -> None:
    world = World()
    with pytest.raises(NotFormatted, match="/a is not formatted"):
        world.check()
    world.format()
    with pytest.raises(NotFormatted, match="belongs to node 1, but"):
        world.check(node_id=2)
    world.format("/c", cluster_id="MkU3OEVBNTcwNTJENDM2Qg")
    with pytest.raises(NotFormatted, match="cluster MkU3OEVBNTcwNTJENDM2Qg"):
        world.check("/a,/c")


def test_formatting_refuses_directories_of_another_cluster_or_node() -> None:
    world = World()
    cluster_id = world.format()
    before = read_meta_properties(world.environment.files, "/a")
    with pytest.raises(AlreadyFormatted, match=f"/a belongs to cluster {cluster_id}, but the cluster id given is MkU3"):
        world.format("/a,/new", cluster_id="MkU3OEVBNTcwNTJENDM2Qg", ignore_formatted=True)
    with pytest.raises(AlreadyFormatted, match=r"/a belongs to node 1, but node\.id is 2"):
        world.format("/a,/new", node_id=2, ignore_formatted=True)
    world.format("/c", cluster_id="MkU3OEVBNTcwNTJENDM2Qg")
    with pytest.raises(AlreadyFormatted, match=f"/c belongs to cluster MkU3.*, but /a to cluster {cluster_id}"):
        world.format("/a,/new,/c", ignore_formatted=True)
    assert read_meta_properties(world.environment.files, "/a") == before
    assert not world.environment.files.exists("/new")


def test_a_crash_in_the_middle_leaves_a_directory_that_is_not_ready() -> None:
    world = World()
    from millbeck.simulation.environment.disk_faults import DiskCall

    world.disk.fail_next(DiskCall.WRITE, path_part="meta.properties")
    with pytest.raises(OSError):
        world.format("/a")
    with pytest.raises(NotFormatted):
        world.check("/a")
    cluster_id = world.format("/a")
    assert world.check("/a") == cluster_id


def test_voters_in_the_log_are_there_from_the_start_and_the_node_leads() -> None:
    async def main(environment: Environment) -> None:
        texts = {
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://:9092,CTL://:9093",
            "controller.listener.names": "CTL",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "metrics.http.port": "0",
        }
        config = NodeConfig(texts)
        features = {"eligible.leader.replicas.version": 0}
        format_directories(environment, config, quorum=InitialQuorum(controllers=None), features=features)
        node = Node(environment, config, NodeSettings())
        await node.start()
        machine = node.broker.quorum.machine
        assert machine is not None
        assert (machine.history.kraft_version, machine.history.latest.ids) == (1, (1,))
        meta = node.broker.logs.directories[0].meta
        assert meta is not None
        assert machine.history.latest.voters[0].directory_id == meta.directory_id
        assert node.is_active_controller
        assert "eligible.leader.replicas.version" not in node.broker.image.features.levels
        await node.stop()

    with simulation.World(1) as world:
        world.run(main, limit_s=30)


def voters_of(node: Node) -> tuple[int, tuple[int, ...], list[int]]:
    """``kraft.version``, who votes, and the ports they are reached at."""
    machine = node.broker.quorum.machine
    assert machine is not None
    voters = machine.history.latest
    return machine.history.kraft_version, voters.ids, [each.port for voter in voters.voters for each in voter.endpoints]


def test_a_new_node_alone_keeps_its_voters_in_the_log_wherever_it_listens() -> None:
    async def main(environment: Environment) -> None:
        without = {"log.dirs": "/data", "listeners": "PLAINTEXT://:9092", "metrics.http.port": "0"}
        with_one = without | {"listeners": "PLAINTEXT://:9092,CTL://h:9093", "controller.listener.names": "CTL"}
        moved = with_one | {"listeners": "PLAINTEXT://:9094,CTL://h:9095"}
        found = []
        for texts in (without, with_one, moved, without):
            config = NodeConfig(texts)
            format_directories(environment, config, ignore_formatted=True)
            node = Node(environment, config, NodeSettings())
            await node.start()
            assert node.is_active_controller
            found.append(voters_of(node))
            await node.stop()
        assert found == [(1, (1,), []), (1, (1,), [9093]), (1, (1,), [9095]), (1, (1,), [9095])]

    with simulation.World(1) as world:
        world.run(main, limit_s=60)


@pytest.mark.parametrize(
    ("metadata_version", "has_voters"), [(VOTERS_IN_LOG_FROM - 1, False), (VOTERS_IN_LOG_FROM, True)]
)
def test_voters_are_in_the_log_from_the_release_on_that_knows_them_there(
    metadata_version: int, has_voters: bool
) -> None:
    world = World()
    world.format(metadata_version=metadata_version)
    assert world.environment.files.exists("/a/__cluster_metadata-0") == has_voters


def test_voters_that_the_file_names_stay_in_the_file() -> None:
    async def main(environment: Environment) -> None:
        texts = {
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://:9092,CTL://h:9093",
            "controller.listener.names": "CTL",
            "controller.quorum.voters": "1@h:9093",
            "metrics.http.port": "0",
        }
        config = NodeConfig(texts)
        format_directories(environment, config)
        node = Node(environment, config, NodeSettings())
        await node.start()
        assert voters_of(node)[:2] == (0, (1,))
        await node.stop()

    with simulation.World(1) as world:
        world.run(main, limit_s=30)
