"""A rolling upgrade under load: nodes that know less are replaced one by one by nodes that know more.

`internal.metadata.version.max` stands for an older release. Nothing that only newer nodes know is used before an
administrator says so, however many of them there are; and there is no way back that would lose what they wrote.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from millbeck.cli.main import cli
from millbeck.testing import Broker, Cluster, cluster
from millbeck.testing.broker_process import BrokerFailed
from tests.e2e.long.load import PARTITIONS, Load, run, until

OLDER, NEWER = "4.2-IV1", "4.3-IV0"
CEILING = "internal.metadata.version.max"


def finalized(bootstrap: str) -> str:
    rows = json.loads(run(bootstrap, "feature", "describe", "--output", "json"))
    return str(next(row["finalized"] for row in rows if row["feature"] == "metadata.version"))


def registrations(node: Broker) -> list[int]:
    """In which versions brokers' registrations were written to this node's metadata log, in their order."""
    parts = sorted((node.directory / "__cluster_metadata-0").glob("*.log"))
    done = CliRunner().invoke(cli, ["dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, parts))])
    assert done.exit_code == 0, done.output
    return [int(one) for one in re.findall(r'"type": ?"REGISTER_BROKER_RECORD", ?"version": ?(\d+)', done.stdout)]


def in_sync(nodes: Cluster) -> bool:
    return run(nodes.bootstrap, "topic", "describe", "--under-replicated").strip() == ""


def test_a_fleet_is_upgraded_node_by_node_under_load(tmp_path: Path) -> None:
    settings = {CEILING: OLDER, "broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
    with cluster(settings, nodes=3, data=tmp_path) as nodes:
        bootstrap = nodes.bootstrap
        assert finalized(bootstrap) == OLDER, "a directory begins with what its node knows"
        run(bootstrap, "topic", "create", "t", "--partitions", str(PARTITIONS), "--replication-factor", "3")
        with Load(bootstrap) as load:
            until(lambda: len(load.consumed) > 100)
            for node in nodes.nodes:
                node.stop()
                del node.settings[CEILING]
                node.start()
                until(lambda: in_sync(nodes))
                assert finalized(bootstrap) == OLDER, "what the older do not know is left alone"
                if node is not nodes.nodes[-1]:
                    refusal = run(bootstrap, "feature", "upgrade", "--release-version", NEWER, code=1)
                    assert "only supports versions 7-29" in refusal
            assert set(registrations(nodes.node(1))) == {3}
            run(bootstrap, "feature", "upgrade", "--release-version", NEWER)
            assert finalized(bootstrap) == NEWER
            nodes.node(2).restart()
            until(lambda: in_sync(nodes))
            until(lambda: registrations(nodes.node(1))[-1] == 4)
        assert load.failures == []
        assert len(load.acknowledged) > 500
        assert sorted(load.consumed, key=int) == sorted(load.acknowledged, key=int)
        assert "might delete metadata" in run(bootstrap, "feature", "downgrade", "--release-version", OLDER, code=1)
        assert "Unsafe metadata downgrade is not supported" in run(
            bootstrap, "feature", "downgrade", "--release-version", OLDER, "--unsafe", code=1
        )
        straggler = nodes.node(3)
        straggler.stop()
        straggler.settings[CEILING] = OLDER
        with pytest.raises(BrokerFailed, match=f"metadata.version is {NEWER}, but this node supports up to {OLDER}"):
            straggler.start()
        del straggler.settings[CEILING]
        straggler.start()
        until(lambda: in_sync(nodes))
