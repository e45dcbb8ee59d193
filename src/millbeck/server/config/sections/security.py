"""Who may do what, and whom a broker believes: the options around authorization and delegation tokens."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.options import (
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


class SecurityOptions(Section):
    authorizer_class_name = option(
        "authorizer.class.name",
        STRING,
        "",
        importance=Importance.LOW,
        doc="The authorizer that is asked before every operation. None is available in this release, everything is "
        "allowed: it must be empty, so that nobody believes to be protected.",
    )
    principal_builder_class = option(
        "principal.builder.class",
        CLASS,
        DEFAULT_PRINCIPAL_BUILDER,
        update=Update.PER_BROKER,
        doc="What makes a principal of a connection. Only the default, which is built in, is available.",
    )
    security_providers = option(
        "security.providers",
        STRING,
        None,
        importance=Importance.LOW,
        doc="Java security providers to install. Accepted for compatibility.",
    )
    config_providers = option(
        "config.providers",
        LIST,
        (),
        valid=distinct(),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="Where values like ${file:...} are looked up. Not available in this release: it must be empty, since such "
        "values would be taken as they stand. Environment variables can hold what a file should not.",
    )


class DelegationTokenOptions(Section):
    """Delegation tokens come in a later release; until then these are checked and listed."""

    secret_key = option(
        "delegation.token.secret.key",
        PASSWORD,
        None,
        doc="The key that signs delegation tokens. Takes effect with them, in a later release.",
    )
    lifetime_ms_max = option(
        "delegation.token.max.lifetime.ms",
        LONG,
        7 * DAY_MS,
        valid=at_least(1),
        doc="How long a delegation token can be renewed. Takes effect with them, in a later release.",
    )
    expiry_time_ms = option(
        "delegation.token.expiry.time.ms",
        LONG,
        1 * DAY_MS,
        valid=at_least(1),
        doc="How long a delegation token is good without renewal. Takes effect with them, in a later release.",
    )
    expiry_check_interval_ms = option(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        1 * HOUR_MS,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often expired delegation tokens are removed. Takes effect with them, in a later release.",
    )
