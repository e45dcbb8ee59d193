"""Creates the audit of a node from its settings, and connects it to the components that report events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from millbeck.metadata.changes import Change, changes_of
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.configs import ResourceType as ConfigType
from millbeck.metadata.records import MetadataRecord
from millbeck.security.audit.events import AuditEvent, AuditKind, event_of
from millbeck.server.audit.audit_file import AuditFile
from millbeck.server.audit.audit_log import AuditLog, AuditSink
from millbeck.server.audit.audit_topic import AuditTopic
from millbeck.server.config.broker_options import BROKER_OPTIONS

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.context import ChangeOrigin
    from millbeck.server.quotas.client_quotas import QuotaConnection


def make_audit(broker: Broker) -> AuditLog | None:
    """The audit configured by the settings; None if neither a file nor the topic is configured."""
    config, environment = broker.config, broker.environment
    options = config.audit
    sinks: list[AuditSink] = []
    if options.file:
        sinks.append(
            AuditFile(environment, options.file, size_bytes_max=options.file_bytes, file_count=options.file_count)
        )
    if options.topic and config.is_broker:
        sinks.append(AuditTopic(broker))
    if not sinks:
        return None
    return AuditLog(
        sinks,
        clock=environment.clock,
        deadlines=broker.deadlines,
        node_id=broker.node_id,
        kinds=[AuditKind(each) for each in options.events],
        repeat_ms=options.repeat_ms,
    )


def connect_audit(audit: AuditLog, broker: Broker) -> None:
    """Make the components of the node report their events."""
    broker.audit = audit
    broker.tls.audit_by(audit)

    def throttled(connection: QuotaConnection, wait_ms: int) -> None:
        audit.record(throttle_event(connection, wait_ms))

    broker.all_quotas.on_long_throttle = throttled
    broker.all_quotas.long_throttle_ms = broker.config.audit.throttle_ms

    def changed(by: ChangeOrigin, before: MetadataImage, records: Sequence[MetadataRecord]) -> None:
        for change in changes_of(before, records, is_secret):
            audit.record(change_event(by, change))

    broker.quorum.on_change = changed


def throttle_event(connection: QuotaConnection, wait_ms: int) -> AuditEvent:
    details = {"wait_ms": wait_ms}
    return event_of(
        AuditKind.THROTTLED, details, principal=connection.principal.text, host=connection.peer_host, by="quota"
    )


def change_event(by: ChangeOrigin, change: Change) -> AuditEvent:
    return event_of(
        AuditKind.CHANGED,
        {"before": change.before, "after": change.after},
        principal=by.principal.text,
        host=by.peer_host,
        api=by.api_name,
        kind=change.kind,
        name=change.name,
    )


def is_secret(resource_type: int, name: str) -> bool:
    """Whether a config's values must be masked: secrets of brokers, and configs that this release does not know."""
    if resource_type != ConfigType.BROKER:
        return False
    return name not in BROKER_OPTIONS or BROKER_OPTIONS[name].sensitive
