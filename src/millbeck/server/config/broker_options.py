"""The sets of all broker options and all group options.

Security options may be set for one listener only: ``listener.name.<name>.<option>``. Such a name is a separate option
with the plain option as its synonym.
"""

from __future__ import annotations

import re
from typing import Any, Final

from millbeck.coordinator.config import BROKER_SECTIONS as COORDINATOR_SECTIONS
from millbeck.kernel.options import Option, OptionSet, Synonym
from millbeck.server.config.log_defaults import LogDefaultOptions
from millbeck.server.config.sections.audit import AuditOptions
from millbeck.server.config.sections.event_loop import EventLoopOptions
from millbeck.server.config.sections.fetching import FetchOptions
from millbeck.server.config.sections.groups import ConsumerGroupOptions, ShareGroupOptions, StreamsGroupOptions
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.log_upkeep import LogCleanerOptions, LogUpkeepOptions
from millbeck.server.config.sections.metadata_log import MembershipOptions, MetadataLogOptions, QuorumOptions
from millbeck.server.config.sections.metrics import MetricsOptions
from millbeck.server.config.sections.node import NodeOptions
from millbeck.server.config.sections.oauth import OauthAccessOptions, OauthClientOptions, OauthServerOptions
from millbeck.server.config.sections.quotas import QuotaOptions
from millbeck.server.config.sections.remote_storage import RemoteCopyOptions, RemoteReadOptions, RemoteStorageOptions
from millbeck.server.config.sections.replication import ReplicationOptions, ReplicationThrottleOptions
from millbeck.server.config.sections.sasl import KerberosOptions, SaslOptions
from millbeck.server.config.sections.security import (
    AuthorizerOptions,
    DelegationTokenOptions,
    RevocationOptions,
    SecurityOptions,
)
from millbeck.server.config.sections.share_groups import (
    DeadLetterOptions,
    ShareCoordinatorOptions,
    ShareDeliveryOptions,
)
from millbeck.server.config.sections.sockets import SocketOptions
from millbeck.server.config.sections.tls import SslOptions, TlsReloadOptions
from millbeck.server.config.sections.topics import TopicDefaultOptions, TopicPolicyOptions
from millbeck.server.config.sections.transactions import TransactionOptions, TransactionTopicOptions

LISTENER_PREFIX: Final = re.compile(r"listener\.name\.(?P<listener>[^.]+)\.(?P<rest>.+)")
_MECHANISM: Final = re.compile(r"[a-z0-9-]+\.(?=sasl\.|connections\.max\.reauth\.ms)")
"""Mechanism prefix: some SASL options are set for one mechanism of one listener."""
_PER_LISTENER_SECTIONS: Final = (SslOptions, SaslOptions, KerberosOptions, OauthServerOptions, OauthClientOptions)
_OTHERS_PER_LISTENER: Final[tuple[Option[Any], ...]] = (
    SocketOptions.allowed_networks,
    SocketOptions.connections_max_reauth_ms,
    SocketOptions.max_connections,
    SocketOptions.max_connection_creation_rate,
    SecurityOptions.principal_builder_class,
)
_PER_LISTENER: Final = {
    declared.name: declared
    for declared in (
        *_OTHERS_PER_LISTENER,
        *(declared for section in _PER_LISTENER_SECTIONS for declared in section.options),
    )
}


def listener_key(listener: str, name: str) -> str:
    """The option's name with the prefix of one listener."""
    return f"listener.name.{listener.lower()}.{name}"


def without_listener(name: str) -> str:
    """The option's plain name, without a listener prefix."""
    match = LISTENER_PREFIX.fullmatch(name)
    if match is None:
        return name
    rest = match["rest"]
    base = rest if rest in _PER_LISTENER else _MECHANISM.sub("", rest, count=1)
    return base if base in _PER_LISTENER else name


class BrokerOptionSet(OptionSet):
    """An option set that also contains names with a listener prefix; iteration yields only the plain names."""

    def __contains__(self, name: object) -> bool:
        return name in self.by_name or (isinstance(name, str) and without_listener(name) != name)

    def __getitem__(self, name: str) -> Option[Any]:
        base = without_listener(name)
        declared = super().__getitem__(base)
        if base == name:
            return declared
        return Option(
            name,
            declared.kind,
            declared.default,
            declared.valid,
            declared.doc,
            update=declared.update,
            importance=declared.importance,
            synonyms=[Synonym(base)],
        )


BROKER_OPTIONS: Final = BrokerOptionSet(
    NodeOptions,
    ListenerOptions,
    SslOptions,
    TlsReloadOptions,
    SocketOptions,
    EventLoopOptions,
    TopicDefaultOptions,
    TopicPolicyOptions,
    FetchOptions,
    LogDefaultOptions,
    LogUpkeepOptions,
    LogCleanerOptions,
    MetadataLogOptions,
    QuorumOptions,
    MembershipOptions,
    ReplicationOptions,
    ReplicationThrottleOptions,
    *COORDINATOR_SECTIONS,
    ShareDeliveryOptions,
    DeadLetterOptions,
    ShareCoordinatorOptions,
    TransactionOptions,
    TransactionTopicOptions,
    AuditOptions,
    AuthorizerOptions,
    SecurityOptions,
    DelegationTokenOptions,
    RevocationOptions,
    SaslOptions,
    KerberosOptions,
    OauthAccessOptions,
    OauthServerOptions,
    OauthClientOptions,
    QuotaOptions,
    RemoteStorageOptions,
    RemoteReadOptions,
    RemoteCopyOptions,
    MetricsOptions,
)
GROUP_OPTIONS: Final = OptionSet(ConsumerGroupOptions, ShareGroupOptions, StreamsGroupOptions)
