"""Setting names of other Kafka clients, which configurations shared with them may contain.

The names are those of the Java clients 4.3 and of librdkafka 2.16. A setting either has its effect here or is refused:
librdkafka's names are translated, and a setting that is not available is an error, unless its value requests the
behaviour that this client has anyway.
"""

from __future__ import annotations

from typing import Final

_JAVA: Final = """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.controllers
    bootstrap.servers buffer.memory check.crcs client.dns.lookup client.id client.rack compression.gzip.level
    compression.lz4.level compression.type compression.zstd.level config.providers connections.max.idle.ms
    default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
    exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id
    group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes isolation.level
    key.deserializer key.serializer linger.ms max.block.ms max.in.flight.requests.per.connection
    max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size metadata.max.age.ms
    metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class
    sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
    sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
    security.protocol security.providers send.buffer.bytes session.timeout.ms share.acknowledgement.mode
    share.acquire.mode socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
    ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type transaction.timeout.ms
    transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
"""

_LIBRDKAFKA: Final = """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.enable
    background_event_cb batch.num.messages broker.address.family broker.address.ttl broker.version.fallback
    builtin.features closesocket_cb compression.codec compression.level connect_cb consume.callback.max.messages
    consume_cb coordinator.query.interval.ms debug default_topic_conf delivery.report.only.error dr_cb dr_msg_cb
    enable.auto.offset.store enable.gapless.guarantee enable.partition.eof enable.random.seed
    enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification enabled_events error_cb
    fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.protocol.type
    https.ca.location https.ca.pem interceptors internal.termination.signal log.connection.close log.queue
    log.thread.name log_cb log_level max.in.flight message.copy.max.bytes message.max.bytes
    message.send.max.retries message.timeout.ms metadata.broker.list msg_order_cmp oauthbearer_token_refresh_cb
    offset.store.method offset.store.path offset.store.sync.interval.ms offset_commit_cb opaque open_cb
    partitioner partitioner_cb plugin.library.paths produce.offset.report queue.buffering.backpressure.threshold
    queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes
    queued.min.messages queuing.strategy rebalance_cb receive.message.max.bytes reconnect.backoff.jitter.ms
    request.required.acks resolve_cb sasl.kerberos.keytab sasl.kerberos.principal sasl.mechanisms
    sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config
    sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type
    sasl.oauthbearer.method sasl.password sasl.username socket.blocking.max.ms socket.keepalive.enable
    socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    socket_cb ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.certificate.verify_cb ssl.crl.location ssl.curves.list ssl.engine.id ssl.engine.location
    ssl.key.location ssl.key.pem ssl.providers ssl.sigalgs.list ssl_ca ssl_certificate ssl_engine_callback_data
    ssl_key statistics.interval.ms stats_cb sticky.partitioning.linger.ms throttle_cb topic.blacklist
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
"""

LIBRDKAFKA_SYNONYMS: Final = {
    "auto.commit.enable": "enable.auto.commit",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "socket.timeout.ms": "request.timeout.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}
"""librdkafka's names of settings, with the common name."""

ASKS_FOR_NOTHING: Final[dict[str, tuple[str, ...]]] = {
    "api.version.request": ("true",),
    "auto.include.jmx.reporter": ("false",),
    "broker.address.family": ("any",),
    "client.dns.lookup": ("use_all_dns_ips", "default"),
    "config.providers": ("",),
    "debug": ("",),
    "enable.auto.offset.store": ("true",),
    "enable.partition.eof": ("false",),
    "enable.random.seed": ("true",),
    "metrics.recording.level": ("INFO",),
    "receive.buffer.bytes": ("-1",),
    "security.providers": ("",),
    "sasl.kerberos.kinit.cmd": ("/usr/bin/kinit",),
    "sasl.kerberos.min.time.before.relogin": ("60000",),
    "sasl.kerberos.ticket.renew.jitter": ("0.05",),
    "sasl.kerberos.ticket.renew.window.factor": ("0.8", "0.80"),
    "send.buffer.bytes": ("-1",),
    "socket.keepalive.enable": ("false",),
    "socket.nagle.disable": ("true",),
    "statistics.interval.ms": ("0",),
}
"""Settings that are not available here, with the values that are accepted because they have no effect."""

REASONS: Final[dict[str, str]] = {
    "bootstrap.controllers": "this client talks to brokers, which forward what is for the controller",
    "client.dns.lookup": "all addresses of a name are tried; there is no canonical lookup",
    "config.providers": "values are not looked up elsewhere: give the values themselves",
    "metrics.recording.level": "there are no metrics of the levels DEBUG and TRACE",
    "receive.buffer.bytes": "sockets have the system's buffer sizes",
    **dict.fromkeys(
        (
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.min.time.before.relogin",
            "sasl.kerberos.ticket.renew.jitter",
            "sasl.kerberos.ticket.renew.window.factor",
        ),
        "the Kerberos library gets and renews tickets by the keytab",
    ),
    "send.buffer.bytes": "sockets have the system's buffer sizes",
    "enable.partition.eof": "compare position() with end_offsets() instead",
    "security.providers": "TLS and hashes are those of Python's ssl and hashlib",
    "ssl.engine.factory.class": "the TLS context is made of the ssl settings",
    "statistics.interval.ms": "there is no callback with statistics: read metrics()",
}
"""The reason why a setting is not available, or the alternative."""

KNOWN: Final = frozenset(_JAVA.split()) | frozenset(_LIBRDKAFKA.split())


_REASONS_BY_PREFIX: Final = {
    "sasl.client.callback.": "a login takes its credentials from settings: sasl.username, sasl.oauthbearer.*",
    "sasl.login.c": "a login takes its credentials from settings: sasl.username, sasl.oauthbearer.*",
    "sasl.oauthbearer.": "the broker checks tokens, and this setting is the broker's",
    "ssl.": "TLS is that of Python's ssl, which chooses it itself",
}
"""The reason for all other settings that begin so."""


def is_known_elsewhere(name: str) -> bool:
    return name in KNOWN


def reason_of(name: str) -> str:
    """Why a setting of other clients is not available, or what to do instead."""
    found = REASONS.get(name)
    if found is not None:
        return found
    return next((text for prefix, text in _REASONS_BY_PREFIX.items() if name.startswith(prefix)), "leave it out")


def java_settings() -> list[str]:
    """The settings of Java's clients, sorted."""
    return sorted(_JAVA.split())
