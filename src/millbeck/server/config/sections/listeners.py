"""Listener options: the addresses a node binds and those it advertises."""

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

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


class ListenerOptions(Section):
    listeners = option(
        "listeners",
        LIST,
        ("PLAINTEXT://:9092",),
        valid=all_of(non_empty(), distinct()),
        update=Update.PER_BROKER,
        importance=Importance.HIGH,
        doc="The listeners, as comma-separated NAME://host:port. Empty host: bind every interface. Port 0: any free "
        "port. Read at start; a dynamic change is refused in this release.",
    )
    advertised_listeners = option(
        "advertised.listeners",
        LIST,
        None,
        valid=all_of(non_empty(), distinct()),
        importance=Importance.HIGH,
        doc="The addresses that clients use to connect. Not set: each client gets the address it connected to.",
    )
    listener_security_protocol_map = option(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="Security protocols by listener name, as NAME:PROTOCOL pairs. Read at start; a dynamic change is refused.",
    )
    controller_listener_names = option(
        "controller.listener.names",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.HIGH,
        doc="The names of the controller listeners, used by other voters, by brokers and by admin clients that bypass "
        "the brokers. Kafka requires it; here a single node does not need one.",
    )
    inter_broker_listener_name = option(
        "inter.broker.listener.name",
        STRING,
        None,
        doc="The name of the listener for connections between brokers. It must be one of listeners and not a "
        "controller listener.",
    )
    inter_broker_listeners = option(
        "millbeck.inter.broker.listeners",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.LOW,
        doc="Listeners besides inter.broker.listener.name on which requests that only brokers send are accepted: for "
        "the time in which brokers change from one listener to another, one after the other. Otherwise replicas could "
        "not fetch between those that have changed and those that have not.",
    )
    security_inter_broker_protocol = option(
        "security.inter.broker.protocol",
        STRING,
        "PLAINTEXT",
        valid=one_of(*PROTOCOLS),
        doc="The security protocol between brokers when inter.broker.listener.name is not set: selects the listener "
        "of that name, or else the first one.",
    )
    early_start_listeners = option(
        "early.start.listeners",
        LIST,
        None,
        valid=distinct(),
        importance=Importance.HIGH,
        doc="Listeners that start before the ACLs are loaded, and serve only superusers until then; by default the "
        "controller listeners. Without its own controller listener, a controller with ACLs cannot join the other "
        "voters. Broker listeners wait until the broker is registered in any case.",
    )
