"""Options of connections: buffer sizes, limits and timeouts."""

from __future__ import annotations

import re
from typing import Final

from millbeck.kernel.options import INT, LIST, LONG, STRING, Importance, Section, Update, Validator, at_least, option
from millbeck.kernel.units import INT_MAX, MIB
from millbeck.security.hosts import are_networks

_ADDRESS_COUNT: Final = r"\s*[^,\s]+:[0-9]{1,10}\s*"
_ADDRESS_COUNTS: Final[Validator[str]] = Validator(
    lambda text: not text or all(re.fullmatch(_ADDRESS_COUNT, entry) for entry in text.split(",")),
    "a list of address:count",
)


_NETWORKS: Final[Validator[tuple[str, ...]]] = Validator(are_networks, "a list of networks such as 10.0.0.0/8")


class SocketOptions(Section):
    allowed_networks = option(
        "millbeck.allowed.networks",
        LIST,
        (),
        valid=_NETWORKS,
        update=Update.PER_BROKER,
        doc="The networks that clients may connect from, such as 10.0.0.0/8,127.0.0.1; empty: all. Other connections "
        "are closed before TLS and before anything is read; open ones stay. Usually set for one listener, as "
        "listener.name.<name>.millbeck.allowed.networks.",
    )
    socket_request_max_bytes = option(
        "socket.request.max.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The maximum size of a request. A larger one closes the connection before memory is allocated.",
    )
    socket_send_buffer_bytes = option(
        "socket.send.buffer.bytes",
        INT,
        102_400,
        importance=Importance.HIGH,
        doc=(
            "SO_SNDBUF of client connections; -1 uses the system's default. Raised up to four times, within the "
            "system's limit (net.core.wmem_max), for connections without TLS that send long responses from files."
        ),
    )
    socket_receive_buffer_bytes = option(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        importance=Importance.HIGH,
        doc=(
            "SO_RCVBUF of client connections; -1 uses the system's default. Raised up to four times, within the "
            "system's limit (net.core.rmem_max), for connections without TLS whose requests are longer."
        ),
    )
    socket_listen_backlog_size = option(
        "socket.listen.backlog.size",
        INT,
        50,
        valid=at_least(1),
        doc="The maximum number of connections waiting to be accepted; at least 1,024, within the system's limit "
        "(net.core.somaxconn).",
    )
    queued_max_request_bytes = option(
        "queued.max.request.bytes",
        LONG,
        -1,
        doc="The maximum memory for incomplete requests of all connections; above it, other connections are not read "
        "until requests complete. -1 means 256 MiB.",
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms",
        LONG,
        600_000,
        doc="Connections that are idle for this long are closed.",
    )
    max_connections = option(
        "max.connections",
        INT,
        INT_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The maximum number of connections over all listeners; further ones are closed at once. Listeners of "
        "controllers are exempt, and so is the one between brokers if there are others for clients. As "
        "listener.name.<listener>.max.connections: of that listener alone.",
    )
    max_connections_per_ip = option(
        "max.connections.per.ip",
        INT,
        INT_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The maximum number of connections from one IP address; further ones are closed at once.",
    )
    max_connections_per_ip_overrides = option(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        valid=_ADDRESS_COUNTS,
        update=Update.CLUSTER_WIDE,
        doc="Overrides of max.connections.per.ip for single addresses, as address:count pairs.",
    )
    max_connection_creation_rate = option(
        "max.connection.creation.rate",
        INT,
        INT_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The maximum number of new connections per second; further ones wait until they are accepted, in the "
        "system's queue of socket.listen.backlog.size. Listeners of controllers are exempt, and so is the one between "
        "brokers if there are others for clients. As listener.name.<listener>.max.connection.creation.rate: of that "
        "listener alone. An average over quota.window.num samples, so that a burst passes.",
    )
    connections_max_reauth_ms = option(
        "connections.max.reauth.ms",
        LONG,
        0,
        doc="The time after which a SASL client must authenticate again, or be disconnected with its next request; 0: "
        "never. May be set per listener and mechanism.",
    )
    connection_failed_authentication_delay_ms = option(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="The delay before a client that failed to authenticate by SASL is answered and disconnected. After a "
        "failed TLS handshake the connection is closed at once.",
    )
    socket_connection_setup_timeout_ms = option(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        doc="The timeout of an attempt to connect to another broker, the same for every attempt.",
    )
    socket_connection_setup_timeout_max_ms = option(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        doc="The maximum of that timeout after failed attempts. Accepted for compatibility: the timeout does not grow.",
    )
