"""Where a node listens, and what it tells clients of that."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.options import (
    LIST,
    STRING,
    Importance,
    Section,
    Update,
    all_of,
    distinct,
    non_empty,
    one_of,
    option,
)

PROTOCOLS_SERVED: Final = ("PLAINTEXT", "SSL")
PROTOCOLS_KNOWN: Final = (*PROTOCOLS_SERVED, "SASL_PLAINTEXT", "SASL_SSL")


class ListenerOptions(Section):
    listeners = option(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        valid=all_of(non_empty(), distinct()),
        update=Update.PER_BROKER,
        importance=Importance.HIGH,
        doc="Where to listen: NAME://host:port, separated by commas. No host: every interface. Port 0: a free one. "
        "In this release it is read at start; changing it while the node runs is refused.",
    )
    advertised_listeners = option(
        "advertised.listeners",
        LIST,
        None,
        valid=all_of(non_empty(), distinct()),
        importance=Importance.HIGH,
        doc="The addresses clients are told. Not set: each client is told the address it dialled.",
    )
    listener_security_protocol_map = option(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="Listener name to security protocol, as NAME:PROTOCOL pairs. A listener whose protocol is SASL_PLAINTEXT "
        "or SASL_SSL is refused in this release. Read at start.",
    )
    controller_listener_names = option(
        "controller.listener.names",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.HIGH,
        doc="The listeners that serve the controller: other voters, brokers, and administration past the brokers. A "
        "node that is alone needs none, where Kafka wants it set.",
    )
    inter_broker_listener_name = option(
        "inter.broker.listener.name",
        STRING,
        None,
        doc="The listener brokers use among themselves. It must be one of listeners, and not a controller's.",
    )
    security_inter_broker_protocol = option(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        valid=one_of(*PROTOCOLS_KNOWN),
        doc="The protocol brokers use among themselves, where inter.broker.listener.name is not set: the listener of "
        "that name, or else the first.",
    )
    early_start_listeners = option(
        "early.start.listeners",
        LIST,
        None,
        valid=distinct(),
        importance=Importance.HIGH,
        doc="Listeners to serve before the authorizer is ready. Accepted for compatibility: nothing waits for one.",
    )
