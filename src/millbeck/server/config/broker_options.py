"""All options of a broker, and all options of a group.

Security options may be set for one listener alone: ``listener.name.<name>.<option>``. Such a name is an option like the
one it ends with, which is its synonym.
"""

from __future__ import annotations

import re
from typing import Any, Final

from millbeck.coordinator.config import BROKER_SECTIONS as COORDINATOR_SECTIONS
from millbeck.kernel.options import Option, OptionSet, Synonym
from millbeck.server.config.log_defaults import LogDefaultOptions
from millbeck.server.config.sections.event_loop import EventLoopOptions
from millbeck.server.config.sections.fetching import FetchOptions
from millbeck.server.config.sections.groups import ConsumerGroupOptions, ShareGroupOptions, StreamsGroupOptions
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.log_upkeep import LogCleanerOptions, LogUpkeepOptions
from millbeck.server.config.sections.metadata_log import MembershipOptions, MetadataLogOptions, QuorumOptions
from millbeck.server.config.sections.metrics import MetricsOptions
from millbeck.server.config.sections.node import NodeOptions
from millbeck.server.config.sections.oauth import OauthClientOptions, OauthServerOptions
from millbeck.server.config.sections.quotas import QuotaOptions
from millbeck.server.config.sections.remote_storage import RemoteCopyOptions, RemoteReadOptions, RemoteStorageOptions
from millbeck.server.config.sections.replication import ReplicationOptions, ReplicationThrottleOptions
from millbeck.server.config.sections.sasl import KerberosOptions, SaslOptions
from millbeck.server.config.sections.security import DelegationTokenOptions, SecurityOptions
from millbeck.server.config.sections.share_groups import (
    DeadLetterOptions,
    ShareCoordinatorOptions,
    ShareDeliveryOptions,
)
from millbeck.server.config.sections.sockets import SocketOptions
from millbeck.server.config.sections.tls import SslOptions
from millbeck.server.config.sections.topics import TopicDefaultOptions
from millbeck.server.config.sections.transactions import TransactionOptions, TransactionTopicOptions

LISTENER_PREFIX: Final = re.compile(r"listener\.name\.(?P<listener>[^.]+)\.(?P<rest>.+)")
_MECHANISM: Final = re.compile(r"[a-z0-9-]+\.(?=sasl\.)")
"""Some SASL options are set for one mechanism of one listener."""
_PER_LISTENER_SECTIONS: Final = (SslOptions, SaslOptions, KerberosOptions, OauthServerOptions, OauthClientOptions)
_PER_LISTENER: Final = {declared.name: declared for section in _PER_LISTENER_SECTIONS for declared in section.options}


def listener_key(listener: str, name: str) -> str:
    """The name under which an option is set for one listener alone."""
    return f"listener.name.{listener.lower()}.{name}"


def without_listener(name: str) -> str:
    """The option that a name is about, whichever listener it is set for."""
    match = LISTENER_PREFIX.fullmatch(name)
    if match is None:
        return name
    rest = match["rest"]
    base = rest if rest in _PER_LISTENER else _MECHANISM.sub("", rest, count=1)
    return base if base in _PER_LISTENER else name


class BrokerOptionSet(OptionSet):
    """Knows the names with a listener's prefix too; iterating gives the plain ones."""

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
    SocketOptions,
    EventLoopOptions,
    TopicDefaultOptions,
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
    SecurityOptions,
    DelegationTokenOptions,
    SaslOptions,
    KerberosOptions,
    OauthServerOptions,
    OauthClientOptions,
    QuotaOptions,
    RemoteStorageOptions,
    RemoteReadOptions,
    RemoteCopyOptions,
    MetricsOptions,
)
GROUP_OPTIONS: Final = OptionSet(ConsumerGroupOptions, ShareGroupOptions, StreamsGroupOptions)
