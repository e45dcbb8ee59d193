"""SASL. Checked and listed; listeners with SASL come in a later release, and until then nothing reads these."""

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
    option,
)


class SaslOptions(Section):
    enabled_mechanisms = option(
        "sasl.enabled.mechanisms",
        LIST,
        ("GSSAPI",),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="The SASL mechanisms clients may use. Takes effect with SASL listeners, in a later release.",
    )
    jaas_config = option(
        "sasl.jaas.config",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="Login module and its options, in JAAS notation. Takes effect with SASL listeners, in a later release.",
    )
    mechanism_inter_broker_protocol = option(
        "sasl.mechanism.inter.broker.protocol",
        STRING,
        "GSSAPI",
        update=Update.PER_BROKER,
        doc="The mechanism brokers use among themselves. Idle on one node.",
    )
    mechanism_controller_protocol = option(
        "sasl.mechanism.controller.protocol",
        STRING,
        "GSSAPI",
        importance=Importance.HIGH,
        doc="The mechanism used with controllers. Idle on one node.",
    )
    server_callback_handler_class = option(
        "sasl.server.callback.handler.class",
        CLASS,
        None,
        doc="A class that answers for the server's side of a mechanism. Takes effect with SASL listeners.",
    )
    client_callback_handler_class = option(
        "sasl.client.callback.handler.class",
        CLASS,
        None,
        doc="A class that answers for the client's side of a mechanism. Idle on one node.",
    )
    login_class = option(
        "sasl.login.class", CLASS, None, doc="A class that logs the broker in. Takes effect with SASL listeners."
    )
    login_callback_handler_class = option(
        "sasl.login.callback.handler.class",
        CLASS,
        None,
        doc="A class that answers for the broker's login. Takes effect with SASL listeners.",
    )
    login_connect_timeout_ms = option(
        "sasl.login.connect.timeout.ms",
        INT,
        None,
        importance=Importance.LOW,
        doc="How long reaching an identity provider may take. Takes effect with SASL listeners.",
    )
    login_read_timeout_ms = option(
        "sasl.login.read.timeout.ms",
        INT,
        None,
        importance=Importance.LOW,
        doc="How long an identity provider's answer may take. Takes effect with SASL listeners.",
    )
    login_refresh_window_factor = option(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        update=Update.PER_BROKER,
        doc="At which part of a credential's life it is renewed. Takes effect with SASL listeners.",
    )
    login_refresh_window_jitter = option(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        update=Update.PER_BROKER,
        doc="How much chance is added to that. Takes effect with SASL listeners.",
    )
    login_refresh_period_seconds_min = option(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        update=Update.PER_BROKER,
        doc="The least time between two renewals. Takes effect with SASL listeners.",
    )
    login_refresh_buffer_seconds = option(
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        update=Update.PER_BROKER,
        doc="How long before its end a credential is renewed at the latest. Takes effect with SASL listeners.",
    )
    login_retry_backoff_ms = option(
        "sasl.login.retry.backoff.ms",
        LONG,
        100,
        importance=Importance.LOW,
        doc="The first rest after a failed login. Takes effect with SASL listeners.",
    )
    login_retry_backoff_ms_max = option(
        "sasl.login.retry.backoff.max.ms",
        LONG,
        10_000,
        importance=Importance.LOW,
        doc="The longest rest after failed logins. Takes effect with SASL listeners.",
    )
    server_receive_bytes_max = option(
        "sasl.server.max.receive.size",
        INT,
        524_288,
        doc="The largest message before a client is authenticated. Takes effect with SASL listeners.",
    )


class KerberosOptions(Section):
    """SASL/GSSAPI."""

    service_name = option(
        "sasl.kerberos.service.name",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="The broker's Kerberos principal. Takes effect with GSSAPI.",
    )
    kinit_command = option(
        "sasl.kerberos.kinit.cmd",
        STRING,
        "/usr/bin/kinit",
        update=Update.PER_BROKER,
        doc="Where kinit is. Takes effect with GSSAPI.",
    )
    ticket_renew_window_factor = option(
        "sasl.kerberos.ticket.renew.window.factor",
        DOUBLE,
        0.8,
        update=Update.PER_BROKER,
        doc="At which part of a ticket's life it is renewed. Takes effect with GSSAPI.",
    )
    ticket_renew_jitter = option(
        "sasl.kerberos.ticket.renew.jitter",
        DOUBLE,
        0.05,
        update=Update.PER_BROKER,
        doc="How much chance is added to that. Takes effect with GSSAPI.",
    )
    time_before_relogin_ms_min = option(
        "sasl.kerberos.min.time.before.relogin",
        LONG,
        60_000,
        update=Update.PER_BROKER,
        doc="The least time between two logins, in milliseconds. Takes effect with GSSAPI.",
    )
    principal_to_local_rules = option(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="How Kerberos principals become short names. Takes effect with GSSAPI.",
    )
