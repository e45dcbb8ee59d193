"""Command lines of Kafka's tools, in the order in which they are run, with how their outputs are compared.

``{p}`` is a prefix of topics, groups and users that differs between the two who run the lines, so that both may change
things on one node; ``{b}`` is the bootstrap server, ``{d}`` a directory of its own.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final

TEXT: Final = "text"
"""The same lines, whatever the spacing between their words."""
ROWS: Final = "rows"
"""The same lines in any order."""
JSON: Final = "json"
"""The same JSON in each line that is JSON, and the same other lines."""
SHAPE: Final = "shape"
"""The same text but for numbers: of measurements only the words can be equal."""
CODE: Final = "code"
"""Only the exit code is equal: what is printed is for people, as help and errors are, or random."""


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    compared: str = TEXT
    stdin: str = ""
    is_of_seeds: bool = False

    def arguments(self, *, prefix: str, bootstrap: str, directory: str) -> list[str]:
        words = shlex.split(self.text)
        fields = {"{p}": prefix, "{b}": bootstrap, "{d}": directory}
        for name, value in fields.items():
            words = [word.replace(name, value) for word in words]
        return words

    @property
    def tool(self) -> str:
        return self.text.split()[0].removesuffix(".sh")


def _of_seeds(text: str, compared: str = TEXT) -> Line:
    return Line(text, compared, is_of_seeds=True)


TOPICS: Final = (
    Line("kafka-topics.sh --bootstrap-server {b} --create --topic {p}-orders --partitions 3 --replication-factor 1"),
    Line("kafka-topics.sh --bootstrap-server {b} --create --topic {p}-orders --if-not-exists"),
    Line("kafka-topics --bootstrap-server {b} --create --topic {p}-orders", CODE),
    Line(
        "kafka-topics --bootstrap-server {b} --create --topic {p}-events --config retention.ms=86400000 "
        "--config cleanup.policy=delete"
    ),
    Line(
        "kafka-topics --bootstrap-server {b} --create --topic {p}-compact --config "
        "cleanup.policy=compact --replica-assignment 1,1"
    ),
    Line("kafka-topics --bootstrap-server {b} --create --topic {p}_dotted.name --partitions 1"),
    Line("kafka-topics --bootstrap-server {b} --create --topic {p}-bad --config no.such.setting=1", CODE),
    Line("kafka-topics --bootstrap-server {b} --create --topic {p}-bad --replication-factor 5", CODE),
    Line("kafka-topics --bootstrap-server {b} --create --topic 'a/b'", CODE),
    _of_seeds("kafka-topics.sh --bootstrap-server {b} --list", ROWS),
    Line("kafka-topics --bootstrap-server {b} --list --exclude-internal", ROWS),
    Line("kafka-topics --bootstrap-server {b} --list --topic '{p}-.*'", ROWS),
    Line("kafka-topics --bootstrap-server {b} --describe --topic {p}-orders"),
    Line("kafka-topics --bootstrap-server {b} --describe --topic '{p}-.*'", ROWS),
    Line("kafka-topics --bootstrap-server {b} --describe --topics-with-overrides", ROWS),
    Line("kafka-topics --bootstrap-server {b} --describe --under-replicated-partitions"),
    Line("kafka-topics --bootstrap-server {b} --describe --at-min-isr-partitions --topic {p}-orders"),
    Line("kafka-topics --bootstrap-server {b} --describe --topic {p}-missing", CODE),
    Line("kafka-topics --bootstrap-server {b} --describe --topic {p}-missing --if-exists"),
    _of_seeds("kafka-topics.sh --bootstrap-server {b} --alter --partitions 5 --topic {p}-orders"),
    Line("kafka-topics --bootstrap-server {b} --alter --partitions 2 --topic {p}-orders", CODE),
    _of_seeds("kafka-topics.sh --zookeeper localhost:2181 --list", CODE),
    Line("kafka-topics --list", CODE),
    Line("kafka-topics --bootstrap-server {b} --list --describe", CODE),
    Line("kafka-topics --bootstrap-server {b}", CODE),
    Line("kafka-topics --help", CODE),
    Line("kafka-topics --version", CODE),
)
CONFIGS: Final = (
    _of_seeds(
        "kafka-configs.sh --bootstrap-server {b} --entity-type topics --entity-name {p}-events --alter "
        "--add-config retention.ms=7776000000"
    ),
    _of_seeds(
        "kafka-configs.sh --bootstrap-server {b} --entity-type topics --entity-name {p}-events --alter "
        "--add-config remote.storage.enable=false"
    ),
    _of_seeds(
        "kafka-configs.sh --bootstrap-server {b} --entity-type groups --entity-name {p}-image-processors --alter "
        "--add-config share.delivery.count.limit=5,share.record.lock.duration.ms=30000"
    ),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type topics --entity-name {p}-events"),
    Line("kafka-configs --bootstrap-server {b} --describe --topic {p}-events --all", ROWS),
    Line("kafka-configs --bootstrap-server {b} --describe --topic {p}-orders"),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type groups --entity-name {p}-image-processors"),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type brokers --entity-name 1"),
    Line("kafka-configs --bootstrap-server {b} --alter --broker-defaults --add-config log.cleaner.threads=2"),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type brokers --entity-default"),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type brokers"),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --entity-type brokers --entity-default "
        "--delete-config log.cleaner.threads"
    ),
    Line("kafka-configs --bootstrap-server {b} --alter --topic {p}-events --delete-config remote.storage.enable"),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --topic {p}-compact --add-config "
        "'cleanup.policy=[compact,delete]'"
    ),
    Line("kafka-configs --bootstrap-server {b} --alter --topic {p}-events --add-config no.such.setting=1", CODE),
    Line("kafka-configs --bootstrap-server {b} --alter --topic {p}-missing --add-config retention.ms=1000", CODE),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --entity-type users --entity-name {p}-alice "
        "--add-config 'SCRAM-SHA-256=[iterations=4096,password=secret]'"
    ),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type users --entity-name {p}-alice", ROWS),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --entity-type users --entity-name {p}-alice "
        "--delete-config 'SCRAM-SHA-256'"
    ),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --entity-type users --entity-name {p}-alice "
        "--add-config producer_byte_rate=10485760"
    ),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type users --entity-name {p}-alice"),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type users", ROWS),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --entity-type users --entity-name {p}-alice "
        "--entity-type clients --entity-default --add-config request_percentage=12.5"
    ),
    Line("kafka-configs --bootstrap-server {b} --describe --user {p}-alice --client-defaults"),
    Line("kafka-configs --bootstrap-server {b} --describe --entity-type users --entity-type clients", ROWS),
    Line("kafka-configs --bootstrap-server {b} --alter --client {p}-app --add-config consumer_byte_rate=0.0005"),
    Line("kafka-configs --bootstrap-server {b} --describe --client {p}-app"),
    Line("kafka-configs --bootstrap-server {b} --alter --client {p}-app --delete-config consumer_byte_rate"),
    Line("kafka-configs --bootstrap-server {b} --alter --client {p}-app --delete-config consumer_byte_rate", CODE),
    Line("kafka-configs --bootstrap-server {b} --alter --client {p}-app --add-config consumer_byte_rate=fast", CODE),
    Line("kafka-configs --bootstrap-server {b} --alter --client {p}-app --add-config no.such.quota=5", CODE),
    Line("kafka-configs --bootstrap-server {b} --describe --ip-defaults"),
    Line(
        "kafka-configs --bootstrap-server {b} --alter --user {p}-alice "
        "--add-config 'SCRAM-SHA-256=[password=secret],producer_byte_rate=5'",
        CODE,
    ),
    Line("kafka-configs --bootstrap-server {b} --alter --client-metrics {p}-metrics --add-config interval.ms=30000"),
    Line("kafka-configs --bootstrap-server {b} --describe --client-metrics {p}-metrics"),
    Line("kafka-configs --bootstrap-server {b} --describe", CODE),
    Line("kafka-configs --help", CODE),
)
RECORDS: Final = (
    Line("kafka-console-producer --bootstrap-server {b} --topic {p}-events", stdin="one\ntwo\nthree\n"),
    Line(
        "kafka-console-producer.sh --bootstrap-server {b} --topic {p}-orders --reader-property parse.key=true "
        "--reader-property key.separator=: --compression-codec zstd --sync",
        stdin="a:1\nb:2\nc:3\nd:4\n",
    ),
    Line(
        "kafka-console-producer --bootstrap-server {b} --topic {p}-events --property parse.headers=true "
        "--producer-property acks=1 --request-required-acks all",
        stdin="h:v\tfour\n",
    ),
    Line("kafka-console-producer --bootstrap-server {b}", CODE),
    Line("kafka-console-consumer --bootstrap-server {b} --topic {p}-events --from-beginning --max-messages 3"),
    Line(
        "kafka-console-consumer --bootstrap-server {b} --topic {p}-events --partition 0 --offset 3 "
        "--max-messages 1 --formatter-property print.headers=true --formatter-property print.offset=true "
        "--formatter-property print.partition=true"
    ),
    Line(
        "kafka-console-consumer.sh --bootstrap-server {b} --topic {p}-orders --from-beginning "
        "--timeout-ms 4000 --property print.key=true --group {p}-readers",
        ROWS,
    ),
    Line(
        "kafka-console-consumer --bootstrap-server {b} --include '{p}-eve.*' --from-beginning "
        "--max-messages 2 --isolation-level read_committed"
    ),
    Line("kafka-console-consumer --bootstrap-server {b}", CODE),
    Line(
        "kafka-configs --bootstrap-server {b} --entity-type groups --entity-name {p}-share --alter "
        "--add-config share.auto.offset.reset=earliest"
    ),
    Line(
        "kafka-console-share-consumer.sh --bootstrap-server {b} --topic {p}-orders --group {p}-share "
        "--max-messages 4 --timeout-ms 20000 --formatter-property print.key=true",
        ROWS,
    ),
    Line("kafka-console-share-consumer --bootstrap-server {b} --topic {p}-orders --group {p}-share --timeout-ms 2000"),
    Line("kafka-console-share-consumer --bootstrap-server {b}", CODE),
    Line("kafka-get-offsets --bootstrap-server {b} --topic {p}-orders --time earliest"),
    Line("kafka-get-offsets.sh --bootstrap-server {b} --topic {p}-events"),
    Line("kafka-get-offsets --bootstrap-server {b} --topic-partitions {p}-events:0,{p}-orders:1-3 --time -2"),
    Line(
        "kafka-get-offsets --bootstrap-server {b} --topic '{p}-.*' --partitions 0 --time -2 --exclude-internal-topics"
    ),
    Line("kafka-get-offsets --bootstrap-server {b} --topic {p}-events --time max-timestamp"),
    Line("kafka-get-offsets --bootstrap-server {b} --topic {p}-events --time 9999999999999"),
    Line("kafka-get-offsets --bootstrap-server {b} --topic {p}-missing", CODE),
    Line("kafka-get-offsets --bootstrap-server {b} --time soon", CODE),
    Line("kafka-delete-records --bootstrap-server {b} --offset-json-file {d}/delete.json"),
    Line("kafka-delete-records --bootstrap-server {b} --offset-json-file {d}/missing.json", CODE),
    Line("kafka-delete-records --bootstrap-server {b}", CODE),
    Line("kafka-get-offsets --bootstrap-server {b} --topic {p}-events --time -2"),
)
GROUPS: Final = (
    Line("kafka-consumer-groups --bootstrap-server {b} --list", ROWS),
    Line("kafka-groups --bootstrap-server {b} --list", ROWS),
    Line("kafka-streams-groups --bootstrap-server {b} --list"),
    Line("kafka-streams-groups --bootstrap-server {b} --list --state", ROWS),
    Line("kafka-streams-groups --bootstrap-server {b} --describe --group {p}-readers", CODE),
    Line("kafka-groups --bootstrap-server {b} --list --consumer", ROWS),
    Line("kafka-groups --bootstrap-server {b} --list --group-type share", ROWS),
    Line("kafka-groups --bootstrap-server {b} --list --share --streams", CODE),
    Line("kafka-groups --bootstrap-server {b}", CODE),
    Line("kafka-consumer-groups --bootstrap-server {b} --list --state", ROWS),
    Line("kafka-consumer-groups --bootstrap-server {b} --list --type classic --state empty", ROWS),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-readers", ROWS),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-readers --state"),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-readers --members"),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-live", ROWS),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-live --members --verbose"),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-live --state --verbose"),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe --group {p}-missing", CODE),
    Line(
        "kafka-consumer-groups --bootstrap-server {b} --reset-offsets --group {p}-readers --topic "
        "{p}-orders --to-earliest",
        ROWS,
    ),
    Line(
        "kafka-consumer-groups --bootstrap-server {b} --reset-offsets --group {p}-readers --all-topics "
        "--shift-by -1 --execute",
        ROWS,
    ),
    Line(
        "kafka-consumer-groups --bootstrap-server {b} --reset-offsets --group {p}-readers --topic "
        "{p}-orders:0 --to-latest --export",
        CODE,
    ),
    Line(
        "kafka-consumer-groups --bootstrap-server {b} --reset-offsets --group {p}-readers --group {p}-second "
        "--topic {p}-events --to-earliest --execute",
        ROWS,
    ),
    Line(
        "kafka-consumer-groups --bootstrap-server {b} --reset-offsets --group {p}-readers --group {p}-second "
        "--topic {p}-events --to-latest --export",
        ROWS,
    ),
    Line("kafka-consumer-groups --bootstrap-server {b} --delete --group {p}-second"),
    Line("kafka-consumer-groups --bootstrap-server {b} --delete-offsets --group {p}-readers --topic {p}-orders", ROWS),
    Line("kafka-consumer-groups --bootstrap-server {b} --delete --group {p}-live", CODE),
    Line("kafka-consumer-groups --bootstrap-server {b} --delete --group {p}-readers"),
    Line("kafka-consumer-groups --bootstrap-server {b} --describe", CODE),
    Line("kafka-consumer-groups --validate-regex '{p}.*'"),
    _of_seeds("kafka-features.sh --bootstrap-server {b} upgrade --feature share.version=1", CODE),
    _of_seeds("kafka-share-groups.sh --bootstrap-server {b} --describe --group {p}-image-processors", ROWS),
    Line("kafka-share-groups --bootstrap-server {b} --list", ROWS),
    Line("kafka-share-groups --bootstrap-server {b} --list --state", ROWS),
    Line("kafka-share-groups --bootstrap-server {b} --describe --group {p}-image-processors --state"),
    Line("kafka-share-groups --bootstrap-server {b} --describe --group {p}-image-processors --members --verbose"),
    Line(
        "kafka-share-groups --bootstrap-server {b} --reset-offsets --group {p}-image-processors --topic "
        "{p}-orders --to-latest --execute",
        ROWS,
    ),
    Line("kafka-share-groups --bootstrap-server {b} --delete-offsets --group {p}-image-processors --topic {p}-orders"),
    Line("kafka-share-groups --bootstrap-server {b} --delete --group {p}-image-processors"),
    Line("kafka-share-groups --bootstrap-server {b} --describe --group {p}-missing", CODE),
)
ACLS: Final = (
    Line(
        "kafka-acls --bootstrap-server {b} --add --allow-principal User:{p}-alice --operation read "
        "--operation write --topic {p}-orders",
        ROWS,
    ),
    Line(
        "kafka-acls --bootstrap-server {b} --add --allow-principal User:{p}-app --consumer --topic "
        "{p}-orders --group {p}-readers",
        ROWS,
    ),
    Line(
        "kafka-acls --bootstrap-server {b} --add --deny-principal User:{p}-bob --deny-host 10.0.0.7 "
        "--topic {p}- --resource-pattern-type prefixed"
    ),
    Line("kafka-acls --bootstrap-server {b} --list --topic {p}-orders", ROWS),
    Line("kafka-acls --bootstrap-server {b} --list --principal User:{p}-alice", ROWS),
    Line("kafka-acls --bootstrap-server {b} --list --topic {p}-orders --resource-pattern-type match", ROWS),
    Line(
        "kafka-acls --bootstrap-server {b} --remove --allow-principal User:{p}-alice --operation read "
        "--topic {p}-orders --force",
        ROWS,
    ),
    Line("kafka-acls --bootstrap-server {b} --remove --topic {p}-orders --force", ROWS),
    Line("kafka-acls --bootstrap-server {b} --list --topic {p}-orders"),
    Line("kafka-acls --bootstrap-server {b} --add --topic {p}-orders", CODE),
    Line("kafka-acls --bootstrap-server {b} --add --allow-principal alice --topic {p}-orders", CODE),
    Line("kafka-acls --list", CODE),
)
CLUSTER: Final = (
    Line("kafka-cluster cluster-id --bootstrap-server {b}"),
    Line("kafka-cluster list-endpoints --bootstrap-server {b}"),
    Line("kafka-cluster list-endpoints --bootstrap-server {b} --include-fenced-brokers"),
    Line("kafka-cluster unregister --bootstrap-server {b} --id 77", CODE),
    Line("kafka-cluster cluster-id", CODE),
    Line("kafka-broker-api-versions --bootstrap-server {b}"),
    Line("kafka-broker-api-versions.sh --help", CODE),
    _of_seeds("kafka-metadata-quorum.sh --bootstrap-server {b} describe --status", SHAPE),
    Line("kafka-metadata-quorum --bootstrap-server {b} describe --replication", SHAPE),
    Line("kafka-metadata-quorum --bootstrap-server {b} describe --replication --human-readable", SHAPE),
    Line("kafka-metadata-quorum --bootstrap-server {b} describe", CODE),
    _of_seeds(
        "kafka-metadata-quorum.sh --bootstrap-server {b} --command-config {d}/server.properties add-controller", CODE
    ),
    Line(
        "kafka-metadata-quorum --bootstrap-server {b} remove-controller --controller-id 9 "
        "--controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ",
        CODE,
    ),
    Line("kafka-features --bootstrap-server {b} describe"),
    Line("kafka-features version-mapping --release-version 4.0-IV3"),
    Line("kafka-features feature-dependencies --feature eligible.leader.replicas.version=1"),
    _of_seeds("kafka-features.sh --bootstrap-server {b} upgrade --metadata 4.3-IV0", CODE),
    Line("kafka-features --bootstrap-server {b} downgrade --feature streams.version=0 --dry-run"),
    Line("kafka-features --bootstrap-server {b} upgrade --feature no.such.feature=1", CODE),
    Line("kafka-log-dirs --bootstrap-server {b} --describe --topic-list {p}-events,{p}_dotted.name", JSON),
    Line("kafka-log-dirs.sh --bootstrap-server {b} --describe --broker-list 1 --topic-list {p}-compact", JSON),
    Line("kafka-log-dirs --bootstrap-server {b} --describe --broker-list 99", CODE),
    Line("kafka-log-dirs --bootstrap-server {b}", CODE),
    Line("kafka-leader-election --bootstrap-server {b} --election-type preferred --topic {p}-orders --partition 0"),
    Line("kafka-leader-election --bootstrap-server {b} --election-type preferred --all-topic-partitions", CODE),
    Line("kafka-leader-election --bootstrap-server {b} --election-type unclean --path-to-json-file {d}/elect.json"),
    Line("kafka-leader-election --bootstrap-server {b} --topic {p}-orders --partition 0", CODE),
    _of_seeds(
        "kafka-reassign-partitions.sh --bootstrap-server {b} --generate --topics-to-move-json-file "
        "{d}/topics.json --broker-list 1",
        JSON,
    ),
    _of_seeds(
        "kafka-reassign-partitions.sh --bootstrap-server {b} --execute --reassignment-json-file "
        "{d}/plan.json --throttle 50000000",
        JSON,
    ),
    Line("kafka-reassign-partitions --bootstrap-server {b} --verify --reassignment-json-file {d}/plan.json"),
    Line("kafka-reassign-partitions --bootstrap-server {b} --list"),
    Line(
        "kafka-reassign-partitions --bootstrap-server {b} --cancel --reassignment-json-file "
        "{d}/plan.json --preserve-throttles",
        CODE,
    ),
    Line("kafka-reassign-partitions --bootstrap-server {b} --execute", CODE),
)
TRANSACTIONS: Final = (
    Line("kafka-transactions --bootstrap-server {b} list", SHAPE),
    Line("kafka-transactions --bootstrap-server {b} list --duration-filter 100000000", ROWS),
    Line("kafka-transactions --bootstrap-server {b} describe --transactional-id {p}-txn", SHAPE),
    Line("kafka-transactions --bootstrap-server {b} describe-producers --topic {p}-orders --partition 0", SHAPE),
    Line("kafka-transactions --bootstrap-server {b} find-hanging --topic {p}-orders --partition 0"),
    Line("kafka-transactions --bootstrap-server {b} forceTerminateTransaction --transactionalId {p}-txn"),
    Line("kafka-transactions --bootstrap-server {b} describe --transactional-id {p}-missing", CODE),
    Line("kafka-transactions --bootstrap-server {b} find-hanging", CODE),
)
LOCAL: Final = (
    _of_seeds("kafka-storage.sh random-uuid", CODE),
    _of_seeds("kafka-storage.sh format -t bWlsbGJlY2staW50ZXJvcA -c {d}/server.properties"),
    Line("kafka-storage format -t bWlsbGJlY2staW50ZXJvcA -c {d}/server.properties", CODE),
    Line("kafka-storage format -t bWlsbGJlY2staW50ZXJvcA -c {d}/server.properties --ignore-formatted"),
    Line("kafka-storage info -c {d}/server.properties"),
    Line("kafka-storage format -c {d}/server.properties", CODE),
    Line("kafka-storage version-mapping --release-version 4.0-IV3"),
    Line("kafka-storage feature-dependencies --feature eligible.leader.replicas.version=1"),
    Line("kafka-dump-log --files {d}/00000000000000000000.log --print-data-log"),
    Line("kafka-dump-log --files {d}/00000000000000000000.log"),
    Line("kafka-dump-log --files {d}/00000000000000000000.log --deep-iteration --max-bytes 80"),
    Line("kafka-dump-log", CODE),
    Line("kafka-server-start.sh --help", CODE),
    Line("kafka-server-start.sh {d}/missing.properties", CODE),
)
MEASUREMENTS: Final = (
    Line(
        "kafka-producer-perf-test --bootstrap-server {b} --topic {p}-compact-not --num-records 500 "
        "--record-size 100 --throughput -1",
        CODE,
    ),
    Line(
        "kafka-producer-perf-test --topic {p}-events --num-records 500 --record-size 100 --throughput -1 "
        "--producer-props bootstrap.servers={b} acks=all",
        SHAPE,
    ),
    Line(
        "kafka-producer-perf-test --topic {p}-events --num-records 20 --payload-monotonic --throughput "
        "1000 --bootstrap-server {b} --command-property linger.ms=0",
        SHAPE,
    ),
    Line("kafka-producer-perf-test --topic {p}-events --num-records 5 --bootstrap-server {b}", CODE),
    Line("kafka-consumer-perf-test --bootstrap-server {b} --topic {p}-events --messages 400", SHAPE),
    Line(
        "kafka-consumer-perf-test --bootstrap-server {b} --topic {p}-events --num-records 300 "
        "--hide-header --timeout 20000",
        SHAPE,
    ),
    Line("kafka-consumer-perf-test --bootstrap-server {b} --topic {p}-events", CODE),
)
TOKENS: Final = (
    Line("kafka-delegation-tokens --bootstrap-server {b} --describe", CODE),
    Line("kafka-delegation-tokens --bootstrap-server {b} --command-config {d}/client.properties --describe", CODE),
    Line("kafka-delegation-tokens --bootstrap-server {b} --command-config {d}/client.properties --create", CODE),
    Line(
        "kafka-delegation-tokens --bootstrap-server {b} --command-config {d}/client.properties --renew --hmac aGk=",
        CODE,
    ),
)
LINES: Final = (
    *TOPICS,
    *CONFIGS,
    *RECORDS,
    *GROUPS,
    *CLUSTER,
    *TRANSACTIONS,
    *ACLS,
    *TOKENS,
    *LOCAL,
    *MEASUREMENTS,
    Line("kafka-topics --bootstrap-server {b} --delete --topic {p}-events"),
    Line("kafka-topics --bootstrap-server {b} --delete --topic {p}-missing --if-exists"),
    Line("kafka-topics --bootstrap-server {b} --delete --topic {p}-missing", CODE),
)
