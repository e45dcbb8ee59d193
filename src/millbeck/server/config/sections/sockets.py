"""Connections: their sizes, their number, their time."""

from __future__ import annotations

import re
from typing import Final

from millbeck.kernel.options import INT, LONG, STRING, Importance, Section, Update, Validator, at_least, option
from millbeck.kernel.units import INT_MAX, MIB

_ADDRESS_COUNT: Final = r"\s*[^,\s]+:[0-9]{1,10}\s*"
_ADDRESS_COUNTS: Final[Validator[str]] = Validator(
    lambda text: not text or all(re.fullmatch(_ADDRESS_COUNT, entry) for entry in text.split(",")),
    "a list of address:count",
)


class SocketOptions(Section):
    socket_request_max_bytes = option(
        "socket.request.max.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The largest request. A longer frame ends its connection before anything is allocated.",
    )
    socket_send_buffer_bytes = option(
        "socket.send.buffer.bytes",
        INT,
        102_400,
        importance=Importance.HIGH,
        doc=(
            "SO_SNDBUF of clients' connections; -1 leaves it to the system. Here up to four times as much, within "
            "the system's limit (net.core.wmem_max), for a connection without TLS whose long replies come from files."
        ),
    )
    socket_receive_buffer_bytes = option(
        "socket.receive.buffer.bytes",
        INT,
        102_400,
        importance=Importance.HIGH,
        doc=(
            "SO_RCVBUF of clients' connections; -1 leaves it to the system. Here up to four times as much, within "
            "the system's limit (net.core.rmem_max), for a connection without TLS whose requests are longer."
        ),
    )
    socket_listen_backlog_size = option(
        "socket.listen.backlog.size",
        INT,
        50,
        valid=at_least(1),
        doc="How many connections may wait to be accepted.",
    )
    queued_max_request_bytes = option(
        "queued.max.request.bytes",
        LONG,
        -1,
        doc="Bytes that requests which have not arrived whole may hold over all connections; more are not read until "
        "others are done. -1 is 256 MiB.",
    )
    connections_max_idle_ms = option(
        "connections.max.idle.ms",
        LONG,
        600_000,
        doc="Connections without a request for this long are closed.",
    )
    max_connections = option(
        "max.connections",
        INT,
        INT_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="How many connections there may be over all listeners; further ones are closed at once.",
    )
    max_connections_per_ip = option(
        "max.connections.per.ip",
        INT,
        INT_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="How many connections there may be from one address; further ones are closed at once.",
    )
    max_connections_per_ip_overrides = option(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        valid=_ADDRESS_COUNTS,
        update=Update.CLUSTER_WIDE,
        doc="Other limits than max.connections.per.ip for single addresses, as address:count pairs.",
    )
    max_connection_creation_rate = option(
        "max.connection.creation.rate",
        INT,
        INT_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="How many connections may be made in a second. Not available in this release: only the default is "
        "accepted; max.connections and max.connections.per.ip bound their number.",
    )
    connections_max_reauth_ms = option(
        "connections.max.reauth.ms",
        LONG,
        0,
        doc="How long a SASL client stays authenticated. Idle until there are SASL listeners.",
    )
    connection_failed_authentication_delay_ms = option(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="How long a connection that failed to authenticate is left open. Idle until there are SASL listeners; a "
        "failed TLS handshake is closed at once.",
    )
    socket_connection_setup_timeout_ms = option(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        doc="How long a broker waits for its first attempt to reach another, and for each one after that.",
    )
    socket_connection_setup_timeout_max_ms = option(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        doc="How long such an attempt may take at the most, after failed ones. Accepted for compatibility: each may "
        "take as long as the first.",
    )
