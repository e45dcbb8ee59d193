"""SASL options."""

from __future__ import annotations

from millbeck.kernel.options import (
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Importance,
    Section,
    Update,
    distinct,
    one_of,
    option,
)


class SaslOptions(Section):
    enabled_mechanisms = option(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="The SASL mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or GSSAPI. May "
        "be set per listener.",
    )
    jaas_config = option(
        "sasl.jaas.config",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The JAAS configuration: a login module of Kafka with its options, as "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config. It is parsed, and no class is loaded. With PLAIN: the "
        "users and passwords, as user_<name>; with username and password the node logs in to other nodes.",
    )
    mechanism_inter_broker_protocol = option(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        update=Update.PER_BROKER,
        doc="The SASL mechanism by which brokers log in to each other, with username and password of "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config. Read at start.",
    )
    mechanism_controller_protocol = option(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        importance=Importance.HIGH,
        doc="The SASL mechanism by which nodes log in to controllers, with username and password of "
        "listener.name.<listener>.<mechanism>.sasl.jaas.config. Not SCRAM on a controller: the credentials are "
        "in the metadata log, which controllers read from each other only after they have logged in.",
    )
    server_callback_handler_class = option(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        doc="For OAUTHBEARER: org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler, which "
        "is the default where sasl.oauthbearer.jwks.endpoint.url is set. For PLAIN, as "
        "listener.name.<listener>.plain.sasl.server.callback.handler.class in the node's file: an entry point of an "
        "installed package that checks passwords (docs/policies.md).",
    )
    client_callback_handler_class = option(
        "sasl.client.callback.handler.class",
        CLASS,
        None,
        doc="The class of the client callback handler of a mechanism. For OAUTHBEARER.",
    )
    login_class = option(
        "sasl.login.class",
        CLASS,
        None,
        doc="The class of the login. For OAUTHBEARER.",
    )
    login_callback_handler_class = option(
        "sasl.login.callback.handler.class",
        CLASS,
        None,
        doc="The class of the login callback handler. For OAUTHBEARER.",
    )
    login_connect_timeout_ms = option(
        "sasl.login.connect.timeout.ms",
        INT,
        None,
        importance=Importance.LOW,
        doc="The timeout of connecting to an identity provider. For OAUTHBEARER.",
    )
    login_read_timeout_ms = option(
        "sasl.login.read.timeout.ms",
        INT,
        None,
        importance=Importance.LOW,
        doc="The timeout of reading a response of an identity provider. For OAUTHBEARER.",
    )
    login_refresh_window_factor = option(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        update=Update.PER_BROKER,
        doc="The fraction of a credential's lifetime after which it is refreshed. For OAUTHBEARER.",
    )
    login_refresh_window_jitter = option(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        update=Update.PER_BROKER,
        doc="The random jitter of the refresh time, as a fraction of the lifetime. For OAUTHBEARER.",
    )
    login_refresh_period_seconds_min = option(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        update=Update.PER_BROKER,
        doc="The minimum time between two refreshes. For OAUTHBEARER.",
    )
    login_refresh_buffer_seconds = option(
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        update=Update.PER_BROKER,
        doc="The time before expiration at which a credential is refreshed at the latest. For OAUTHBEARER.",
    )
    login_retry_backoff_ms = option(
        "sasl.login.retry.backoff.ms",
        LONG,
        100,
        importance=Importance.LOW,
        doc="The initial backoff after a failed login. For OAUTHBEARER.",
    )
    login_retry_backoff_ms_max = option(
        "sasl.login.retry.backoff.max.ms",
        LONG,
        10_000,
        importance=Importance.LOW,
        doc="The maximum backoff after failed logins. For OAUTHBEARER.",
    )
    server_receive_bytes_max = option(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        doc="The maximum size of a message from a client that is not authenticated yet; a longer one closes the "
        "connection.",
    )
    plain_verify = option(
        "millbeck.plain.verify",
        STRING,
        "jaas",
        valid=one_of("jaas", "scram"),
        doc="How PLAIN checks passwords. jaas: the users of the listener's JAAS configuration, as in Kafka. scram: the "
        "users' SCRAM credentials, so that no password is written in a file. May be set per listener.",
    )


class KerberosOptions(Section):
    """Options of SASL/GSSAPI (Kerberos)."""

    service_name = option(
        "sasl.kerberos.service.name",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="The first part of the Kerberos principals of the other nodes; default: that of this node's own.",
    )
    kinit_command = option(
        "sasl.kerberos.kinit.cmd",
        STRING,
        "/usr/bin/kinit",
        update=Update.PER_BROKER,
        doc="The path of the kinit command. Accepted for compatibility: the Kerberos library needs none.",
    )
    ticket_renew_window_factor = option(
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        update=Update.PER_BROKER,
        doc="The fraction of a ticket's lifetime after which it is renewed. Accepted for compatibility: the Kerberos "
        "library renews tickets by the keytab.",
    )
    ticket_renew_jitter = option(
        "sasl.kerberos.ticket.renew.jitter",
        DOUBLE,
        0.05,
        update=Update.PER_BROKER,
        doc="The random jitter of the renewal time, as a fraction. Accepted for compatibility: the Kerberos "
        "library renews tickets by the keytab.",
    )
    time_before_relogin_ms_min = option(
        "sasl.kerberos.min.time.before.relogin",
        LONG,
        60_000,
        update=Update.PER_BROKER,
        doc="The minimum time between two logins, in milliseconds. Accepted for compatibility: the Kerberos "
        "library renews tickets by the keytab.",
    )
    principal_to_local_rules = option(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="Rules that map Kerberos names to the names of principals; the first that applies decides. May be set per "
        "listener.",
    )
