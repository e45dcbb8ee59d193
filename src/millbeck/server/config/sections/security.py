"""Options of authorization and delegation tokens."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.options import (
    BOOLEAN,
    CLASS,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Importance,
    Section,
    Update,
    at_least,
    distinct,
    option,
)
from millbeck.kernel.units import DAY_MS, HOUR_MS

DEFAULT_PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
STANDARD_AUTHORIZERS: Final = (STANDARD_AUTHORIZER, "StandardAuthorizer")


class AuthorizerOptions(Section):
    authorizer_class_name = option(
        "authorizer.class.name",
        STRING,
        "",
        importance=Importance.LOW,
        doc=f"The authorizer: {STANDARD_AUTHORIZER}, or StandardAuthorizer for short, decides by the ACLs in the "
        "cluster metadata; any other name is an entry point in the group millbeck.authorizer. Empty: everything is "
        "allowed. Set it on all brokers and controllers.",
    )
    super_users = option(
        "super.users",
        STRING,
        "",
        doc="Principals that may do everything, separated by semicolons, such as User:admin;User:broker. The "
        "principals of brokers and controllers must be among them.",
    )
    allow_everyone_if_no_acl_found = option(
        "allow.everyone.if.no.acl.found",
        BOOLEAN,
        False,
        doc="Whether all operations are allowed on resources that no ACL matches.",
    )
    authorizer_dry_run = option(
        "millbeck.authorizer.dry.run",
        BOOLEAN,
        False,
        doc="Allow every request, but log and count the requests that the ACLs would deny. For introducing ACLs in a "
        "running cluster.",
    )


class SecurityOptions(Section):
    principal_builder_class = option(
        "principal.builder.class",
        CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        update=Update.PER_BROKER,
        doc="The plugin that makes the principal of a client: Kafka's default, or the name of an entry point in the "
        "group millbeck.principal_builder. May be set per listener. Read at start; a dynamic change is refused.",
    )
    security_providers = option(
        "security.providers",
        STRING,
        None,
        importance=Importance.LOW,
        doc="Java security providers to install. Accepted for compatibility.",
    )
    hardened = option(
        "millbeck.hardened",
        BOOLEAN,
        False,
        doc="The stricter profile, as with millbeck server --hardened: stricter default limits; TLS and authentication "
        "on every listener that is not on loopback; PLAIN only with TLS; required issuer and audience of tokens. A "
        "node whose settings violate it does not start.",
    )
    config_providers = option(
        "config.providers",
        LIST,
        (),
        valid=distinct(),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="The names of config providers, which replace values like ${file:path:key} in the properties file, and "
        "only there. config.providers.<name>.class is one of Kafka's FileConfigProvider, DirectoryConfigProvider and "
        "EnvVarConfigProvider; config.providers.<name>.param.allowed.paths and .allowlist.pattern limit access.",
    )


class RevocationOptions(Section):
    disconnect = option(
        "millbeck.disconnect.on.revoke",
        BOOLEAN,
        False,
        doc="Close the connections of a client when its credentials are deleted: its SCRAM user, its delegation "
        "token, or its PLAIN user in a dynamic sasl.jaas.config. Kafka leaves such connections open.",
    )


class DelegationTokenOptions(Section):
    """Options of delegation tokens."""

    secret_key = option(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        doc="The secret key of delegation tokens, the same on every node; without it delegation tokens are disabled.",
    )
    lifetime_ms_max = option(
        "delegation.token.max.lifetime.ms",
        LONG,
        7 * DAY_MS,
        valid=at_least(1),
        doc="The maximum lifetime of a delegation token, renewals included.",
    )
    expiry_time_ms = option(
        "delegation.token.expiry.time.ms",
        LONG,
        1 * DAY_MS,
        valid=at_least(1),
        doc="How long a delegation token is valid without renewal.",
    )
    expiry_check_interval_ms = option(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        1 * HOUR_MS,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The interval between removals of expired delegation tokens.",
    )
