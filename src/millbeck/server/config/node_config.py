"""One node's configuration: the parsed settings, as the sections that its components read."""

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
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions, ShareProtocolOptions, StreamsProtocolOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.options import ConfigLayers, Option, OptionSet, Update
from millbeck.kernel.units import INT_MAX
from millbeck.metadata.features import FeatureRange, metadata_version_of, supported_features
from millbeck.security.hosts import Networks
from millbeck.security.standard_authorizer import parse_super_users
from millbeck.server.config.addresses import ListenerAddress, parse_address, parse_protocol_map
from millbeck.server.config.broker_options import BROKER_OPTIONS, GROUP_OPTIONS, listener_key
from millbeck.server.config.consistency import check_consistent
from millbeck.server.config.hardened import (
    changed_by_profile,
    check_hardened,
    check_mechanisms,
    check_tls,
    hardened_texts,
    is_hardened,
)
from millbeck.server.config.listener_sasl import ListenerSasl, MechanismSettings, listener_sasl, peer_credentials
from millbeck.server.config.peers import check_peer_listeners
from millbeck.server.config.refused import check_available, check_tls_available
from millbeck.server.config.roles import BROKER, CONTROLLER, QuorumVoter, check_roles, parse_voters
from millbeck.server.config.sections.audit import AuditOptions
from millbeck.server.config.sections.fetching import FetchOptions
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.log_upkeep import LogCleanerOptions, LogUpkeepOptions
from millbeck.server.config.sections.metadata_log import MembershipOptions, MetadataLogOptions, QuorumOptions
from millbeck.server.config.sections.metrics import MetricsOptions
from millbeck.server.config.sections.node import NodeOptions
from millbeck.server.config.sections.quotas import QuotaOptions
from millbeck.server.config.sections.replication import ReplicationOptions, ReplicationThrottleOptions
from millbeck.server.config.sections.sasl import SaslOptions
from millbeck.server.config.sections.security import (
    DEFAULT_PRINCIPAL_BUILDER,
    AuthorizerOptions,
    DelegationTokenOptions,
    RevocationOptions,
    SecurityOptions,
)
from millbeck.server.config.sections.share_groups import ShareCoordinatorOptions
from millbeck.server.config.sections.sockets import SocketOptions
from millbeck.server.config.sections.tls import SslOptions, TlsReloadOptions
from millbeck.server.config.sections.topics import TopicDefaultOptions, TopicPolicyOptions
from millbeck.server.config.sections.transactions import TransactionOptions, TransactionTopicOptions

NODE_ID = "node.id"
BROKER_ID = "broker.id"

log = logging.getLogger(__name__)


class NodeConfig:
    """All config sections of one node, resolved from its properties file, environment and flags.

    Raises `InvalidConfig`. Unknown names are kept without effect; the reader of the file warns about them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.is_hardened = is_hardened(texts)
        self.hardened_changes = tuple(changed_by_profile(texts)) if self.is_hardened else ()
        """What the stricter profile changed: name, new value, Kafka's default."""
        self.texts = _with_both_ids(hardened_texts(texts) if self.is_hardened else texts)
        check_available(self.texts)
        for name, text in self.texts.items():
            if name in BROKER_OPTIONS:
                BROKER_OPTIONS.parse(name, text)
        check_consistent(self.texts)
        self._dynamic: dict[str, str] = {}
        layers = ConfigLayers(static=self.texts)
        self.node = NodeOptions.resolve(layers)
        self.listener = ListenerOptions.resolve(layers)
        self.topic_defaults = TopicDefaultOptions.resolve(layers)
        self.topic_policy = TopicPolicyOptions.resolve(layers)
        self.fetch = FetchOptions.resolve(layers)
        self.metadata_log = MetadataLogOptions.resolve(layers)
        self.quorum = QuorumOptions.resolve(layers)
        self.membership = MembershipOptions.resolve(layers)
        self.quotas = QuotaOptions.resolve(layers)
        self.metrics = MetricsOptions.resolve(layers)
        self.tls_reload = TlsReloadOptions.resolve(layers)
        self.authorizer = AuthorizerOptions.resolve(layers)
        self.audit = AuditOptions.resolve(layers)
        self.revocation = RevocationOptions.resolve(layers)
        self.tokens = DelegationTokenOptions.resolve(layers)
        self.super_users = parse_super_users(self.authorizer.super_users)
        self.offsets_topic = OffsetsTopicOptions.resolve(layers)
        self.offsets = OffsetOptions.resolve(layers)
        self.classic_groups = ClassicGroupOptions.resolve(layers)
        self.consumer_groups = ConsumerProtocolOptions.resolve(layers)
        self.streams_groups = StreamsProtocolOptions.resolve(layers)
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
        """Whether unstable API versions are enabled, by Kafka's setting or by that for unstable feature versions."""
        return self.node.unstable_api_versions_enable or self.node.unstable_feature_versions_enable

    @property
    def option_set(self) -> OptionSet:
        return BROKER_OPTIONS

    @property
    def group_option_set(self) -> OptionSet:
        return GROUP_OPTIONS

    def described_options(self, layers: ConfigLayers) -> list[Option[Any]]:
        """All options, plus those set for one listener."""
        texts = {name for place, _ in layers.broker_sources() for name in place}
        of_listeners = sorted(name for name in texts if name not in BROKER_OPTIONS.by_name and name in BROKER_OPTIONS)
        return [*BROKER_OPTIONS, *(BROKER_OPTIONS[name] for name in of_listeners)]

    @property
    def open_files_max(self) -> int:
        return self.upkeep.open_files_max

    # dynamic config

    def apply_dynamic(self, of_broker: Mapping[str, str], of_all_brokers: Mapping[str, str]) -> None:
        """Apply changed dynamic configs.

        Never raises: an unusable value, which another release may have accepted, is ignored and logged.
        """
        of_broker, of_all_brokers = _usable(of_broker), _usable(of_all_brokers)
        self._dynamic = {**of_all_brokers, **of_broker}
        self._resolve_dynamic(ConfigLayers(static=self.texts, dynamic_broker=of_broker, dynamic_default=of_all_brokers))

    @property
    def dynamic(self) -> Mapping[str, str]:
        """The dynamic configs of this broker; another object after each change."""
        return self._dynamic

    def _resolve_dynamic(self, layers: ConfigLayers) -> None:
        """Resolve the sections with dynamic options. Listeners are read only at start."""
        self.socket = SocketOptions.resolve(layers)
        self.upkeep = LogUpkeepOptions.resolve(layers)
        self.cleaner = LogCleanerOptions.resolve(layers)
        self.replication = ReplicationOptions.resolve(layers)
        self.replication_throttle = ReplicationThrottleOptions.resolve(layers)
        self.transactions = TransactionOptions.resolve(layers)
        self.sasl_options = SaslOptions.resolve(layers)
        self.share_coordinator = ShareCoordinatorOptions.resolve(layers)

    def ssl(self, listener: str, dynamic: Mapping[str, str] | None = None) -> SslOptions:
        """The TLS options of one listener; options with the listener's prefix take precedence. ``dynamic`` replaces the
        current dynamic configs. Raises `InvalidConfig` if the options are not supported."""
        texts = {**self.texts, **(self._dynamic if dynamic is None else dynamic)}
        merged = {
            declared.name: texts.get(listener_key(listener, declared.name), texts.get(declared.name))
            for declared in SslOptions.options
        }
        given = {name: text for name, text in merged.items() if text is not None}
        check_tls_available(given)
        options = SslOptions.resolve(ConfigLayers(static=given))
        if self.is_hardened and (self._dynamic or dynamic):
            # The node's own settings were checked at its start, all together.
            check_tls(self._addresses(), listener, options)
        return options

    def allowed_networks(self, listener: str) -> Networks | None:
        """The networks that a listener's clients may connect from; None means all."""
        texts = {**self.texts, **self._dynamic}
        name = SocketOptions.allowed_networks.name
        text = texts.get(listener_key(listener, name), texts.get(name))
        if text is None:
            return None
        wanted = SocketOptions.resolve(ConfigLayers(static={name: text})).allowed_networks
        return Networks(wanted) if wanted else None

    def principal_builder(self, listener: str) -> tuple[str, str] | None:
        """The setting that names a listener's principal builder, and the name; None for Kafka's default."""
        plain = SecurityOptions.principal_builder_class.name
        for setting in (listener_key(listener, plain), plain):
            if setting in self.texts:
                name = self.texts[setting].strip()
                is_default = full_name(name, (DEFAULT_PRINCIPAL_BUILDER,)) in ("", DEFAULT_PRINCIPAL_BUILDER)
                return None if is_default else (setting, name)
        return None

    def connections_max(self, listener: str) -> int | None:
        """The maximum number of connections of one listener; None if only that of all listeners counts."""
        text = {**self.texts, **self._dynamic}.get(listener_key(listener, SocketOptions.max_connections.name))
        if text is None:
            return None
        return SocketOptions.resolve(ConfigLayers(static={SocketOptions.max_connections.name: text})).max_connections

    def connection_rate_max(self, listener: str | None) -> int | None:
        """The maximum of new connections per second of one listener, or of the broker; None if there is none."""
        option = SocketOptions.max_connection_creation_rate
        name = option.name if listener is None else listener_key(listener, option.name)
        text = {**self.texts, **self._dynamic}.get(name)
        if text is None:
            return None
        limit = SocketOptions.resolve(ConfigLayers(static={option.name: text})).max_connection_creation_rate
        return None if limit == INT_MAX else limit

    def sasl(self, listener: str) -> ListenerSasl:
        """The SASL settings of one listener. Raises `InvalidConfig`."""
        is_local = any(address.name == listener and address.is_loopback for address in self._addresses())
        sasl = listener_sasl(listener, {**self.texts, **self._dynamic}, is_local=is_local, static=self.texts)
        if self.is_hardened and self._dynamic:
            # The node's own settings were checked at its start, all together.
            check_mechanisms(listener, self._protocol_map()[listener], sasl)
        return sasl

    def peer_sasl(self, listener: str, mechanism: str) -> MechanismSettings:
        """The settings by which this node logs in to that listener of other nodes. Raises `InvalidConfig`."""
        is_controllers = listener in self.controller_names()
        named_by = (
            SaslOptions.mechanism_controller_protocol if is_controllers else SaslOptions.mechanism_inter_broker_protocol
        )
        texts = {**self.texts, **self._dynamic}
        return peer_credentials(listener, mechanism, texts, named_by.name, static=self.texts)

    @property
    def token_secret(self) -> str:
        """The secret key of delegation tokens; if it is empty, delegation tokens are disabled."""
        secret = self.tokens.secret_key
        return "" if secret is None else secret.reveal()

    # roles

    @property
    def is_broker(self) -> bool:
        return BROKER in self.node.process_roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.node.process_roles

    @property
    def voters(self) -> tuple[QuorumVoter, ...]:
        """The static voters; empty on a single node, and where the metadata log holds the voter set."""
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
        """The listeners for clients and other brokers: all but the controller listeners."""
        names = self.controller_names()
        return [address for address in self._addresses() if address.name not in names]

    def controller_addresses(self) -> list[ListenerAddress]:
        """The controller listeners; none on a single node whose clients use the broker listeners only."""
        names = self.controller_names()
        return [address for address in self._addresses() if address.name in names]

    def controllers_protocol(self) -> tuple[str, str]:
        """The listener and security protocol by which nodes connect to controllers."""
        names = self.controller_names()
        return (names[0], self._protocol_map()[names[0]]) if names else ("", "PLAINTEXT")

    def brokers_protocol(self) -> tuple[str, str]:
        """The listener and security protocol by which brokers connect to each other."""
        name = self.inter_broker_listener
        return name, self._protocol_map()[name]

    @property
    def early_listeners(self) -> tuple[str, ...]:
        """The listeners that serve superusers before the ACLs are loaded; by default those of controllers."""
        given = self.listener.early_start_listeners
        return self.controller_names() if given is None else tuple(name.upper() for name in given)

    @cached_property
    def inter_broker_listener(self) -> str:
        """The name of the inter-broker listener; cached because every follower fetch needs it."""
        names = [address.name for address in self.client_addresses()]
        named = self.listener.inter_broker_listener_name or self.listener.security_inter_broker_protocol
        return named.upper() if named.upper() in names else names[0]

    @cached_property
    def listeners_of_brokers(self) -> frozenset[str]:
        """The listeners on which requests that only brokers send are accepted."""
        return frozenset({self.inter_broker_listener, *self.listener.inter_broker_listeners})

    @property
    def node_listeners(self) -> tuple[str, ...]:
        """The names of the listeners by which nodes reach each other."""
        among_brokers = (self.inter_broker_listener,) if self.client_addresses() else ()
        return (*among_brokers, *self.controller_names())

    def advertised(self) -> dict[str, tuple[str, int]]:
        """The advertised addresses by listener; for a missing listener clients get the address they connected to."""
        protocol_map = self._protocol_map()
        advertised: dict[str, tuple[str, int]] = {}
        for text in self.listener.advertised_listeners or ():
            address = parse_address(text, protocol_map, "advertised.listeners")
            if address.host in ("0.0.0.0", "::"):
                raise InvalidConfig(
                    f"advertised.listeners: clients cannot connect to {address.host}: use a routable address"
                )
            if address.name in advertised:
                raise InvalidConfig(f"advertised.listeners: {address.name} is listed twice")
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
            raise InvalidConfig(f"listeners: names must be unique, got {','.join(names)}")
        if len(set(ports)) != len(ports):
            raise InvalidConfig(f"listeners: ports must be unique, got {','.join(map(str, addresses))}")
        for address in addresses:
            if address.is_encrypted:
                self.ssl(address.name)
            if address.has_sasl:
                self.sasl(address.name)
        for name in self.early_listeners:
            if name not in names and name not in self.controller_names():
                raise InvalidConfig(f"early.start.listeners: {name} is not one of listeners")
        unknown = [name for name in self.advertised() if name not in names]
        if unknown:
            raise InvalidConfig(f"advertised.listeners: {unknown[0]} is not one of listeners")
        among_brokers = self.listener.inter_broker_listener_name
        if among_brokers is not None and among_brokers.upper() not in names:
            raise InvalidConfig(f"inter.broker.listener.name: {among_brokers} is not one of listeners")
        for name in self.listener.inter_broker_listeners:
            if name not in names:
                raise InvalidConfig(f"{ListenerOptions.inter_broker_listeners.name}: {name} is not one of listeners")
        check_peer_listeners(self)
        if self.is_hardened:
            check_hardened(self)


def _supported_features(release_max: str | None, *, has_unstable: bool) -> Mapping[str, FeatureRange]:
    try:
        level = None if release_max is None else metadata_version_of(release_max)
        return supported_features(metadata_version_max=level, has_unstable=has_unstable)
    except ValueError as error:
        raise InvalidConfig(f"internal.metadata.version.max: {error}") from error


def _with_both_ids(texts: Mapping[str, str]) -> dict[str, str]:
    """Copy ``broker.id`` and ``node.id`` to each other: both name the same id."""
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
            log.error("ignoring a dynamic config: %s", error.message)
        else:
            usable[name] = text
    return usable
