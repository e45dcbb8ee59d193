from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from millbeck import simulation
from millbeck.host import real_environment
from millbeck.kernel.environment import Environment
from millbeck.metadata.snapshot import read_snapshot
from millbeck.server.config import NodeConfig
from millbeck.server.local.cluster import (
    FILE_NAME,
    ClusterMismatch,
    controllers_host,
    format_cluster,
    read_controllers,
    restore_layouts,
)
from millbeck.server.local.embedded import NodePlacement, cluster_settings
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.storage.properties import read_meta_properties

HOST = "127.0.0.1"


def placed(directory: Path | str, count: int = 3, *, port: int = 9092) -> list[NodePlacement]:
    return [
        NodePlacement(
            node_id=number,
            directory=f"{directory}/node-{number}",
            port=port + 10 * number,
            controller_port=port + 10 * number + 1,
            metrics_port=0,
        )
        for number in range(1, count + 1)
    ]


def made(directory: Path, count: int = 3, *, port: int = 9092) -> tuple[str, list[NodePlacement]]:
    environment = real_environment()
    places = restore_layouts(environment.files, str(directory), placed(directory, count, port=port), host=HOST)
    configs = [NodeConfig(cluster_settings(place, places, host=HOST)) for place in places]
    return format_cluster(environment, str(directory), places, configs), places


def test_formatting_makes_one_cluster_and_leaves_it_so(tmp_path: Path) -> None:
    cluster_id, places = made(tmp_path)
    assert made(tmp_path)[0] == cluster_id
    found = [read_meta_properties(real_environment().files, each.directory) for each in places]
    assert [None if each is None else (each.cluster_id, each.node_id) for each in found] == [
        (cluster_id, number) for number in (1, 2, 3)
    ]


def test_every_directory_begins_with_the_same_voters_in_the_log(tmp_path: Path) -> None:
    _, places = made(tmp_path)
    files = real_environment().files
    told = []
    for place in places:
        name = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
        content = read_snapshot((Path(place.directory) / name).read_bytes())
        assert content.kraft_version == 1
        assert content.voters is not None
        told.append(content.voters)
    assert told[0] == told[1] == told[2]
    metas = [read_meta_properties(files, place.directory) for place in places]
    assert [each.directory_id for each in told[0].voters] == [each.directory_id for each in metas if each is not None]
    assert [each.endpoints[0].port for each in told[0].voters] == [9103, 9113, 9123]


def test_controllers_stay_where_they_were_whatever_the_ports_are(tmp_path: Path) -> None:
    made(tmp_path)
    _, places = made(tmp_path, port=19092)
    assert [(each.port, each.controller_host, each.controller_port) for each in places] == [
        (19102, HOST, 9103),
        (19112, HOST, 9113),
        (19122, HOST, 9123),
    ]
    with pytest.raises(ClusterMismatch, match="port 9103 is used by a controller"):
        made(tmp_path, port=9093)


def test_a_cluster_keeps_its_size(tmp_path: Path) -> None:
    made(tmp_path)
    for count in (2, 4):
        with pytest.raises(ClusterMismatch, match="another size"):
            made(tmp_path, count)
    (tmp_path / FILE_NAME).unlink()
    for count in (2, 4):
        with pytest.raises(ClusterMismatch, match="another size"):
            made(tmp_path, count)


def test_a_node_alone_keeps_its_directory(tmp_path: Path) -> None:
    format_directories(real_environment(), NodeConfig({"log.dirs": str(tmp_path)}))
    with pytest.raises(ClusterMismatch, match="a single node"):
        made(tmp_path)


def test_directories_of_two_clusters_are_refused(tmp_path: Path) -> None:
    cluster_id, places = made(tmp_path)
    shutil.rmtree(places[1].directory)
    config = NodeConfig({"log.dirs": places[1].directory, "node.id": "2"})
    other = format_directories(real_environment(), config)
    with pytest.raises(ClusterMismatch, match=f"node-2 belongs to node 2 of cluster {other}, .* cluster {cluster_id}"):
        made(tmp_path)


def test_directories_of_an_earlier_release_go_on_with_the_voters_of_their_settings(tmp_path: Path) -> None:
    environment = real_environment()
    old = [replace(place, voters_in_log=False) for place in placed(tmp_path)]
    for place in old:
        config = NodeConfig(cluster_settings(place, old, host=HOST))
        format_directories(environment, config, cluster_id="AAAAAAAAAAAAAAAAAAAABA")
    assert restore_layouts(environment.files, str(tmp_path), placed(tmp_path), host="0.0.0.0") == old
    assert made(tmp_path) == ("AAAAAAAAAAAAAAAAAAAABA", old)
    assert read_controllers(environment.files, str(tmp_path)) is None


@pytest.mark.parametrize("content", [b"", b"controller.quorum.bootstrap.servers=x", b"\xff"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(ClusterMismatch, match=FILE_NAME):
        made(tmp_path)


@pytest.mark.parametrize(("host", "where"), [("", HOST), ("0.0.0.0", HOST), ("::", "::1"), ("h", "h")])
def test_nobody_looks_for_a_controller_on_every_interface(host: str, where: str) -> None:
    assert controllers_host(host) == where


def reached_at(node: Node) -> list[int]:
    assert node.broker.quorum.kraft_version == 1
    return [voter.endpoints[0].port for voter in node.broker.quorum.voters.voters]


def test_voters_that_are_found_elsewhere_after_a_restart_tell_the_others() -> None:
    """One moves at a time: two of three make a leader, and the third tells it where it listens now."""
    places = [replace(place, controller_host="harness") for place in placed("/all")]

    async def main(environment: Environment) -> None:
        for mover in (None, 0, 1, 2):
            if mover is not None:
                places[mover] = replace(places[mover], controller_port=places[mover].controller_port + 500)
            configs = [NodeConfig(cluster_settings(place, places, host="harness")) for place in places]
            if mover is None:
                format_cluster(environment, "/all", places, configs)
            nodes = [Node(environment, config, NodeSettings()) for config in configs]
            await asyncio.gather(*(node.start() for node in nodes))
            # A voter asks again every few seconds.
            await asyncio.sleep(10)
            ports = [place.controller_port for place in places]
            assert [reached_at(node) for node in nodes] == [ports] * 3
            await asyncio.gather(*(node.stop() for node in nodes))

    with simulation.World(1) as world:
        world.run(main, limit_s=300)
