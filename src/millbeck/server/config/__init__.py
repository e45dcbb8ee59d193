"""A node's configuration: the declarations of all broker options of Kafka 4.3, and the values one node runs with.

`sections` declares the options, `log_defaults` derives the broker-wide defaults of topic options from the topic
options, and `broker_options` gathers all of them. `NodeConfig` parses a node's settings and refuses removed names of
earlier Kafka releases (`removed`), settings this release does not support (`refused`), and contradictory ones
(`consistency`).
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
