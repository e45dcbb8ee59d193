"""One node's configuration: its texts, and the sections that the node's parts read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from millbeck.coordinator.config import (
    ClassicGroupOptions,
    GroupCoordinatorOptions,
    OffsetOptions,
    OffsetsTopicOptions,
)
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions, ShareProtocolOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import Layers, Option, OptionSet, Update
from millbeck.metadata.features import FeatureRange, metadata_version_of, supported_features
from millbeck.server.config.addresses import parse_address, parse_protocol_map
from millbeck.server.config.broker_options import BROKER_OPTIONS, GROUP_OPTIONS, listener_key
from millbeck.server.config.consistency import check_consistent
from millbeck.server.config.refused import check_available, check_tls_available
from millbeck.server.config.removed import check_not_removed
from millbeck.server.config.roles import BROKER, CONTROLLER, Voter, check_roles, parse_voters
from millbeck.server.config.sections.fetching import FetchOptions
from millbeck.server.config.sections.listeners import PROTOCOLS_SERVED, ListenerOptions
from millbeck.server.config.sections.log_upkeep import LogCleanerOptions, LogUpkeepOptions
from millbeck.server.config.sections.metadata_log import MembershipOptions, MetadataLogOptions, QuorumOptions
from millbeck.server.config.sections.metrics import MetricsOptions
from millbeck.server.config.sections.node import NodeOptions
from millbeck.server.config.sections.quotas import QuotaOptions
from millbeck.server.config.sections.replication import ReplicationOptions, ReplicationThrottleOptions
from millbeck.server.config.sections.share_groups import ShareCoordinatorOptions
from millbeck.server.config.sections.sockets import SocketOptions
from millbeck.server.config.sections.tls import SslOptions
from millbeck.server.config.sections.topics import TopicDefaultOptions
from millbeck.server.config.sections.transactions import TransactionOptions, TransactionTopicOptions
from millbeck.server.listener import ListenerAddress

NODE_ID = "node.id"
BROKER_ID = "broker.id"

log = logging.getLogger(__name__)


class NodeConfig:
    """Every section of one node, resolved from the texts of its file, environment and flags.

    Raises `InvalidConfig`. Names nobody knows are kept and have no effect; who reads the file warns of them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = _with_both_ids(texts)
        check_not_removed(self.texts)
        for name, text in self.texts.items():
            if name in BROKER_OPTIONS:
                BROKER_OPTIONS.parse(name, text)
        check_available(self.texts)
        check_consistent(self.texts)
        self._dynamic: dict[str, str] = {}
        layers = Layers(static=self.texts)
        self.node = NodeOptions.resolve(layers)
        self.listener = ListenerOptions.resolve(layers)
        self.topic_defaults = TopicDefaultOptions.resolve(layers)
        self.fetch = FetchOptions.resolve(layers)
        self.metadata_log = MetadataLogOptions.resolve(layers)
        self.quorum = QuorumOptions.resolve(layers)
        self.membership = MembershipOptions.resolve(layers)
        self.quotas = QuotaOptions.resolve(layers)
        self.metrics = MetricsOptions.resolve(layers)
        self.offsets_topic = OffsetsTopicOptions.resolve(layers)
        self.offsets = OffsetOptions.resolve(layers)
        self.classic_groups = ClassicGroupOptions.resolve(layers)
        self.consumer_groups = ConsumerProtocolOptions.resolve(layers)
        self.group_coordinator = GroupCoordinatorOptions.resolve(layers)
        self.share_groups = ShareProtocolOptions.resolve(layers)
        self.transaction_topic = TransactionTopicOptions.resolve(layers)
        self._resolve_dynamic(layers)
        self.supported_features = _supported_features(
            self.metadata_log.metadata_version_max, has_unstable=self.node.unstable_feature_versions_enable
        )
        check_roles(self.node, self.listener, self.quorum, self._addresses(), self.controller_names())
        self._check_listeners()

    @property
    def offers_unstable_versions(self) -> bool:
        """Of the protocol: asked for as in Kafka, or along with the features that need them."""
        return self.node.unstable_api_versions_enable or self.node.unstable_feature_versions_enable

    @property
    def option_set(self) -> OptionSet:
        return BROKER_OPTIONS

    @property
    def group_option_set(self) -> OptionSet:
        return GROUP_OPTIONS

    def described_options(self, layers: Layers) -> list[Option[Any]]:
        """All options, and those that are set for one listener alone."""
        texts = {name for place, _ in layers.on_the_broker() for name in place}
        of_listeners = sorted(name for name in texts if name not in BROKER_OPTIONS.by_name and name in BROKER_OPTIONS)
        return [*BROKER_OPTIONS, *(BROKER_OPTIONS[name] for name in of_listeners)]

    @property
    def open_files_max(self) -> int:
        return self.upkeep.open_files_max

    # changed while the node runs

    def apply_dynamic(self, of_broker: Mapping[str, str], of_all_brokers: Mapping[str, str]) -> None:
        """Take over options that were changed while the node runs.

        Never raises: a value that cannot be used, which another release may have let in, is passed over and logged.
        """
        of_broker, of_all_brokers = _usable(of_broker), _usable(of_all_brokers)
        self._dynamic = {**of_all_brokers, **of_broker}
        self._resolve_dynamic(Layers(static=self.texts, dynamic_broker=of_broker, dynamic_default=of_all_brokers))

    def _resolve_dynamic(self, layers: Layers) -> None:
        """The sections that have an option which can change. Listeners are read once, when the node starts."""
        self.socket = SocketOptions.resolve(layers)
        self.upkeep = LogUpkeepOptions.resolve(layers)
        self.cleaner = LogCleanerOptions.resolve(layers)
        self.replication = ReplicationOptions.resolve(layers)
        self.replication_throttle = ReplicationThrottleOptions.resolve(layers)
        self.transactions = TransactionOptions.resolve(layers)
        self.share_coordinator = ShareCoordinatorOptions.resolve(layers)

    def ssl(self, listener: str) -> SslOptions:
        """The TLS options of one listener: its own before everybody's. Raises `InvalidConfig` for what is refused."""
        texts = {**self.texts, **self._dynamic}
        merged = {
            declared.name: texts.get(listener_key(listener, declared.name), texts.get(declared.name))
            for declared in SslOptions.options
        }
        given = {name: text for name, text in merged.items() if text is not None}
        check_tls_available(given)
        return SslOptions.resolve(Layers(static=given))

    # roles

    @property
    def is_broker(self) -> bool:
        return BROKER in self.node.process_roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.node.process_roles

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The static voters; empty for a node that is alone, and where the metadata log says who votes."""
        return parse_voters(self.quorum.voters)

    # directories

    @property
    def directories(self) -> tuple[str, ...]:
        return self.node.log_dirs or self.node.log_dir

    @property
    def metadata_directory(self) -> str:
        return self.metadata_log.metadata_log_dir or self.directories[0]

    # listeners

    def client_addresses(self) -> list[ListenerAddress]:
        """The listeners that clients and other brokers use: all but the controllers'."""
        names = self.controller_names()
        return [address for address in self._addresses() if address.name not in names]

    def controller_addresses(self) -> list[ListenerAddress]:
        """The listeners that serve the controller; none where it is reached through the brokers' alone."""
        names = self.controller_names()
        return [address for address in self._addresses() if address.name in names]

    def controllers_protocol(self) -> tuple[str, str]:
        """The listener by which nodes reach controllers, and its security protocol."""
        names = self.controller_names()
        return (names[0], self._protocol_map()[names[0]]) if names else ("", "PLAINTEXT")

    @cached_property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves; asked with every fetch of a follower."""
        names = [address.name for address in self.client_addresses()]
        named = self.listener.inter_broker_listener_name or self.listener.security_inter_broker_protocol
        return named.upper() if named.upper() in names else names[0]

    def advertised(self) -> dict[str, tuple[str, int]]:
        """What clients are told, by listener; a listener that is missing tells them what they dialled."""
        protocol_map = self._protocol_map()
        advertised: dict[str, tuple[str, int]] = {}
        for text in self.listener.advertised_listeners or ():
            address = parse_address(text, protocol_map, "advertised.listeners")
            if address.host in ("0.0.0.0", "::"):
                raise InvalidConfig(f"advertised.listeners: nobody can connect to {address.host}, name an address")
            if address.name in advertised:
                raise InvalidConfig(f"advertised.listeners: {address.name} comes twice")
            advertised[address.name] = (address.host, address.port)
        return advertised

    def controller_names(self) -> tuple[str, ...]:
        return tuple(name.upper() for name in self.listener.controller_listener_names)

    def _protocol_map(self) -> dict[str, str]:
        protocol_map = parse_protocol_map(self.listener.listener_security_protocol_map)
        for name in self.controller_names():
            protocol_map.setdefault(name, "PLAINTEXT")
        return protocol_map

    def _addresses(self) -> list[ListenerAddress]:
        protocol_map = self._protocol_map()
        return [parse_address(text, protocol_map) for text in self.listener.listeners]

    def _check_listeners(self) -> None:
        addresses = self._addresses()
        names = [address.name for address in addresses]
        ports = [(address.host, address.port) for address in addresses if address.port]
        if len(set(names)) != len(names):
            raise InvalidConfig(f"listeners: each name may come once, got {','.join(names)}")
        if len(set(ports)) != len(ports):
            raise InvalidConfig(f"listeners: each port may come once, got {','.join(map(str, addresses))}")
        for address in addresses:
            if address.protocol not in PROTOCOLS_SERVED:
                raise InvalidConfig(
                    f"listeners: {address.name} is a listener with {address.protocol}, and SASL is not available in "
                    f"this release: use {' or '.join(PROTOCOLS_SERVED)}"
                )
            if address.protocol == "SSL":
                self.ssl(address.name)
        unknown = [name for name in self.advertised() if name not in names]
        if unknown:
            raise InvalidConfig(f"advertised.listeners: {unknown[0]} is not one of listeners")
        among_brokers = self.listener.inter_broker_listener_name
        if among_brokers is not None and among_brokers.upper() not in names:
            raise InvalidConfig(f"inter.broker.listener.name: {among_brokers} is not one of listeners")


def _supported_features(release_max: str | None, *, has_unstable: bool) -> Mapping[str, FeatureRange]:
    try:
        level = None if release_max is None else metadata_version_of(release_max)
        return supported_features(metadata_version_max=level, has_unstable=has_unstable)
    except ValueError as error:
        raise InvalidConfig(f"internal.metadata.version.max: {error}") from error


def _with_both_ids(texts: Mapping[str, str]) -> dict[str, str]:
    """``broker.id`` and ``node.id`` are two names of one number: whichever is set gives the other."""
    both = dict(texts)
    if BROKER_ID in both:
        both.setdefault(NODE_ID, both[BROKER_ID])
    elif NODE_ID in both:
        both[BROKER_ID] = both[NODE_ID]
    if both.get(NODE_ID, "").strip() != both.get(BROKER_ID, "").strip():
        raise InvalidConfig(f"node.id ({both[NODE_ID]}) and broker.id ({both[BROKER_ID]}) must be the same")
    return both


def _usable(texts: Mapping[str, str]) -> dict[str, str]:
    usable: dict[str, str] = {}
    for name, text in texts.items():
        if name not in BROKER_OPTIONS or BROKER_OPTIONS[name].update is Update.READ_ONLY:
            continue
        try:
            BROKER_OPTIONS.parse(name, text)
        except InvalidConfig as error:
            log.error("a dynamic setting is passed over: %s", error.message)
        else:
            usable[name] = text
    return usable
