"""Command lines with a mistake that no broker is asked about: one line each, which says what to do."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

WRONG = {
    # a mistyped command or flag
    "tpoic list": "no such command 'tpoic', did you mean topic?",
    "topic lsit": "no such command 'lsit', did you mean list?",
    "topic --lsit": "no such option --lsit, did you mean --list?",
    "topic create orders --partitons 3": "Did you mean '--partitions'?",
    "txn find-hanging --zookeper localhost:2181": "No such option '--zookeper'. Did you mean '--brokers'? (see",
    "produce orders --broker-list localhost:9092": "--broker-list was removed; use --bootstrap-server",
    "topic list --zookeeper localhost:2181": "--zookeeper was removed; use --bootstrap-server",
    # a value that is missing
    "topic create": "no topic given",
    "topic create orders --partitions": "Option '--partitions' requires an argument",
    "topic create orders --config retention.ms": "--config: expected key=value but got retention.ms",
    "topic alter orders": "nothing to change: give --partitions, --config or --delete-config",
    "config alter --topic orders --add-config retention.ms": "'retention.ms' is not KEY=VALUE",
    "config describe --entity-name orders": "need --entity-type",
    "consume orders --share": "--share needs --group",
    "acl add --topic orders": "no principal given: --allow-principal or --deny-principal",
    "feature upgrade --feature share.version": "'share.version' is not NAME=LEVEL",
    "reassign execute": "Missing option '--reassignment-json-file'",
    "perf produce load": "Missing option '-n' / '--num-records'",
    "topic delete-records orders": "'orders' is not TOPIC:PARTITION:OFFSET, such as orders:0:4711",
    # a value that is wrong
    "topic create orders --partitions three": "'three' is not a whole number",
    "topic create orders --partitions 0": "0 is not in the range x>=1",
    "topic list -o jsn": "'jsn' is not one of 'table', 'json', 'yaml'",
    "produce orders --acks 2": "'2' is not one of 'all', '-1', '0', '1'",
    "produce orders --reader-property parse.kye=true": "parse.kye is not one of parse.key, key.separator",
    "consume orders --offset middle": "'middle' is not earliest, latest, stored, an offset, -N or s@TIMESTAMP",
    "group reset billing --topic orders --by-duration 7d": "expected a duration such as P7D or PT1H30M, not '7d'",
    "group list --state Emty": "'Emty' is not one of Assigning, CompletingRebalance, Dead, Empty",
    "acl add --allow-principal alice --topic orders": "write it as type:name, such as User:alice",
    "acl add --allow-principal User:a --topic orders --operation reed": "'reed' is not one of any, all, read",
    "topic offsets orders --time soon": "'soon' is neither one of latest, earliest",
    "feature upgrade --release-version 9.9": "unknown release '9.9': known are 3.3-IV3",
    # options that cannot be combined
    "topic create orders -r 3 --replica-assignment 1:2": "cannot be combined with --partitions",
    "group reset billing --topic orders --to-earliest --to-latest": "give exactly one of --to-earliest, --to-latest",
    # settings and files
    "server --config {config} --set num.partitons=3": "did you mean num.partitions?",
    "server --config {config} --set num.partitions=many": "num.partitions: expected a whole number",
    "server --config {config}": "run `millbeck storage format` with this configuration first",
    "server --config {missing}": "missing.properties: No such file or directory",
    "topic list -X bootstrap.server=localhost:9092": "did you mean bootstrap.servers?",
    "topic list -X security.protocol=TSL": "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
    "profile use prdo": "create it: millbeck profile create prdo -b HOST:PORT",
    "reassign execute --reassignment-json-file {config}": "server.properties: not valid JSON",
    # brokers that are not there
    "topic list --bootstrap-server localhost:port": "'localhost:port' is not host:port",
    "topic list --bootstrap-server 127.0.0.1:1": "connection refused; set --bootstrap-server or MILLBECK_BOOTSTRAP",
    "topic list --bootstrap-server nosuchhost.invalid:9092": "; set --bootstrap-server or MILLBECK_BOOTSTRAP",
}


@pytest.mark.parametrize(("line", "remedy"), WRONG.items())
def test_a_mistake_is_one_line_with_the_remedy(
    fails: Callable[..., str], tmp_path: Path, line: str, remedy: str
) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:19093\n"
        f"listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093\nlog.dirs={tmp_path}/logs\n"
    )
    names = {"{config}": str(config), "{missing}": str(tmp_path / "missing.properties")}
    words = [names.get(word, word) for word in shlex.split(line)]
    assert remedy in fails(*words)
