"""A node's configuration: every broker option Kafka 4.3 has, declared by concern, and the values one node runs with.

`sections` holds the declarations, `log_defaults` derives the broker-wide defaults of topic options from the topic
options, `broker_options` gathers all of them. `NodeConfig` reads a node's texts: names of former releases are refused
(`removed`), so is what would be believed and not done (`refused`), and what contradicts itself (`consistency`).
"""

from __future__ import annotations

from millbeck.server.config.addresses import parse_address, parse_ip_overrides, parse_protocol_map
from millbeck.server.config.broker_options import BROKER_OPTIONS, GROUP_OPTIONS
from millbeck.server.config.node_config import NodeConfig
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.tls import SslOptions

__all__ = [
    "BROKER_OPTIONS",
    "GROUP_OPTIONS",
    "ListenerOptions",
    "NodeConfig",
    "SslOptions",
    "parse_address",
    "parse_ip_overrides",
    "parse_protocol_map",
]
