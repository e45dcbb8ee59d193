"""Every declared message and log record says what the schema file in Kafka's own jars says, field by field."""

from __future__ import annotations

import zipfile
from functools import cache
from typing import Any

import pytest

from millbeck.coordinator.group import records as group_records
from millbeck.coordinator.group.consumer import records as consumer_records
from millbeck.coordinator.group.share import records as share_group_records
from millbeck.coordinator.group.streams import records as streams_group_records
from millbeck.coordinator.share import records as share_records
from millbeck.coordinator.transaction import records as transaction_records
from millbeck.metadata import records as metadata_records
from millbeck.security import principal_bytes
from millbeck.server.network.route import Route
from millbeck.server.requests.routes import CONTROLLER_ROUTES, ROUTES
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages import classic_groups as classic_groups_messages
from millbeck.wire.schema import Kind, Message, schema_of
from tests.model.wire import kafka_schemas
from tools import peers

RECORD_MODULES = (
    metadata_records,
    group_records,
    consumer_records,
    share_group_records,
    streams_group_records,
    share_records,
    transaction_records,
    principal_bytes,
    classic_groups_messages,
)
OTHER_NAMES = {"EncodedPrincipal": "DefaultPrincipalData", "ZkMigrationStateRecord": "ZkMigrationRecord"}

_OLDER_METADATA = "a cluster at an older metadata.version does not have it, and its records are written without it"
_ALWAYS_WRITTEN = "always written, and null is what a coordinator means when it has nothing to say"
_OLDER_TRANSACTIONS = "at transaction.version 0 there is nothing of it in the record"
ACCEPTED = {
    "RegisterBrokerRecord.in_controlled_shutdown: ignorable True, not False": _OLDER_METADATA,
    "RegisterBrokerRecord.log_dirs: ignorable True, not False": _OLDER_METADATA,
    "RegisterBrokerRecord.cordoned_log_dirs: ignorable True, not False": _OLDER_METADATA,
    "PartitionRecord.directories: ignorable True, not False": _OLDER_METADATA,
    "PartitionRecord.eligible_leader_replicas: ignorable True, not False": _OLDER_METADATA,
    "PartitionRecord.last_known_elr: ignorable True, not False": _OLDER_METADATA,
    "PartitionChangeRecord.directories: ignorable True, not False": _OLDER_METADATA,
    "PartitionChangeRecord.eligible_leader_replicas: ignorable True, not False": _OLDER_METADATA,
    "PartitionChangeRecord.last_known_elr: ignorable True, not False": _OLDER_METADATA,
    "BrokerRegistrationChangeRecord.in_controlled_shutdown: ignorable True, not False": _OLDER_METADATA,
    "BrokerRegistrationChangeRecord.log_dirs: ignorable True, not False": _OLDER_METADATA,
    "BrokerRegistrationChangeRecord.cordoned_log_dirs: ignorable True, not False": _OLDER_METADATA,
    "ConsumerGroupMemberMetadataValue.instance_id: default None, not ''": _ALWAYS_WRITTEN,
    "ConsumerGroupMemberMetadataValue.rack_id: default None, not ''": _ALWAYS_WRITTEN,
    "ConsumerGroupMemberMetadataValue.subscribed_topic_regex: default None, not ''": _ALWAYS_WRITTEN,
    "ConsumerGroupMemberMetadataValue.server_assignor: default None, not ''": _ALWAYS_WRITTEN,
    "ShareGroupMemberMetadataValue.rack_id: default None, not ''": _ALWAYS_WRITTEN,
    "StreamsGroupMemberMetadataValue.instance_id: default None, not ''": _ALWAYS_WRITTEN,
    "StreamsGroupMemberMetadataValue.rack_id: default None, not ''": _ALWAYS_WRITTEN,
    "TransactionLogValue.previous_producer_id: ignorable True, not False": _OLDER_TRANSACTIONS,
    "TransactionLogValue.next_producer_id: ignorable True, not False": _OLDER_TRANSACTIONS,
    "TransactionLogValue.next_producer_epoch: ignorable True, not False": _OLDER_TRANSACTIONS,
    "TransactionLogValue.client_transaction_version: ignorable True, not False": _OLDER_TRANSACTIONS,
}
"""What is declared otherwise on purpose, and why the bytes are Kafka's all the same."""


@cache
def kafkas_files() -> dict[str, kafka_schemas.Json]:
    """The schema files of every jar, by the message's name."""
    files = {}
    for jar in sorted(peers.peer_path("kafka").glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as opened:
            for name in opened.namelist():
                if name.startswith("common/") and name.endswith(".json"):
                    files[name.rpartition("/")[2].removesuffix(".json")] = kafka_schemas.parse(
                        opened.read(name).decode()
                    )
    return files


REQUESTS = [api.request for api in APIS.values()]
RECORDS = [
    cls
    for module in RECORD_MODULES
    for cls in vars(module).values()
    if isinstance(cls, type) and issubclass(cls, Message) and cls.__module__ == module.__name__
    if schema_of(cls).kind is not Kind.STRUCT
]
DECLARED = [*REQUESTS, *(api.response for api in APIS.values()), *RECORDS]


@pytest.mark.parametrize("cls", DECLARED, ids=lambda cls: cls.__name__)
def test_declared_as_in_kafkas_jars(cls: type[Any]) -> None:
    theirs = kafkas_files()[OTHER_NAMES.get(cls.__name__, cls.__name__)]
    found = kafka_schemas.differences(cls, theirs)
    assert sorted(found) == sorted(each for each in ACCEPTED if each.startswith(f"{cls.__name__}."))


@pytest.mark.parametrize("route", [*ROUTES, *CONTROLLER_ROUTES], ids=lambda route: APIS[route.api_key].name)
def test_what_kafka_calls_unstable_is_held_back(route: Route) -> None:
    api = APIS[route.api_key]
    is_unstable = kafkas_files()[api.request.__name__].get("latestVersionUnstable", False)
    assert api.max_version - route.max_version == (1 if is_unstable else 0)


def test_every_request_of_kafka_is_declared() -> None:
    files = kafkas_files().items()
    names = {name for name, file in files if file["type"] == "request" and file["validVersions"] != "none"}
    assert names == {cls.__name__ for cls in REQUESTS}
