"""WriteTxnMarkers: write commit or abort markers to the partitions this node leads.

Behaviour
- Sent by a transaction coordinator, or by an administrator that aborts a hanging transaction.
- Answered when every marker is committed or has failed; errors are per partition.
- In ``__consumer_offsets`` a marker also applies or drops the transaction's pending offset commits.
Versions
- 2: the transaction version; from transaction version 2 on the marker's epoch must be above that of the records.
"""

from __future__ import annotations

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.runtime.shard_runner import TransactionEnd
from millbeck.kernel.errors import NONE, ApiError, ClusterAuthorizationFailed
from millbeck.kernel.ids import TopicPartition
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.transactions.marker_writer import write_marker
from millbeck.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Code = tuple[int, TopicPartition, int]
"""The result of a marker: producer id, partition, error code."""


def error_reply(
    request: WriteTxnMarkersRequest | None, version: int, error: ApiError
) -> WriteTxnMarkersResponse | None:
    if request is None:
        return None
    codes = [(marker.producer_id, name, error.code) for marker in request.markers for name in _partitions_of(marker)]
    return _shape(codes)


def _partitions_of(marker: WritableTxnMarker) -> list[TopicPartition]:
    names = (TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes)
    return list(dict.fromkeys(names))


def _shape(codes: list[Code]) -> WriteTxnMarkersResponse:
    producers: dict[int, dict[str, list[WritableTxnMarkerPartitionResult]]] = {}
    for producer_id, name, code in codes:
        partitions = producers.setdefault(producer_id, {}).setdefault(name.topic, [])
        partitions.append(WritableTxnMarkerPartitionResult(name.partition, code))
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id, [WritableTxnMarkerTopicResult(topic, results) for topic, results in topics.items()]
            )
            for producer_id, topics in producers.items()
        ]
    )


@handles(
    27,
    needs=[
        Need(Operation.ALTER, ResourceType.CLUSTER)
        | Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="on the inter-broker listener only")
    ],
    error_reply=error_reply,
)
def handle_write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> None:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME) and not call.is_cluster_action_allowed():
        raise ClusterAuthorizationFailed
    gather: ResultCollector[Code] = ResultCollector(lambda codes: call.reply(_shape(codes)))
    for marker in request.markers:
        end = TransactionEnd(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            marker.transaction_version,
        )
        for name in _partitions_of(marker):
            _write(call, name, end, gather)
    gather.close()


def _write(call: Call, name: TopicPartition, end: TransactionEnd, gather: ResultCollector[Code]) -> None:
    reply = gather.ask(lambda error: (end.producer_id, name, error.code))

    def succeed(_: bool) -> None:
        reply.reply((end.producer_id, name, NONE))

    write_marker(call.broker, name, end, ResponseCallback(succeed, reply.fail))
