"""The settings of OAUTHBEARER on a listener: Kafka's names, what they allow, and what is refused at start."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import settings_of_environment
from millbeck.server.config import NodeConfig
from millbeck.server.config.listener_oauth import UNSECURED_HANDLER, VALIDATOR_HANDLER, OauthSettings

URL = "https://idp.example/jwks"
JWKS = "sasl.oauthbearer.jwks.endpoint.url"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
HANDLER = "sasl.server.callback.handler.class"
JAAS = "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://broker.example:9092",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    JWKS: URL,
    ALLOWED: f"https://other.example/jwks,{URL}",
    "sasl.oauthbearer.expected.issuer": "https://idp.example",
    "sasl.oauthbearer.expected.audience": "kafka",
}


def config(**changed: str | None) -> NodeConfig:
    merged = SETTINGS | {name.replace("__", "-"): value for name, value in changed.items()}
    return NodeConfig({name: value for name, value in merged.items() if value is not None})


def oauth(**changed: str | None) -> OauthSettings:
    found = config(**changed).sasl("SASL_PLAINTEXT").mechanisms["OAUTHBEARER"].oauth
    assert found is not None
    return found


def test_keys_and_rules() -> None:
    settings = oauth()
    assert settings.keys is not None
    assert (settings.keys.location.host, settings.keys.location.target) == ("idp.example", "/jwks")
    assert (settings.keys.refresh_ms, settings.keys.backoff_ms, settings.keys.backoff_ms_max) == (
        3_600_000,
        100,
        10_000,
    )
    assert (settings.keys.connect_timeout_ms, settings.keys.read_timeout_ms) == (10_000, 10_000)
    assert (settings.rules.issuer, settings.rules.audiences) == ("https://idp.example", ("kafka",))
    assert (settings.rules.clock_skew_ms, settings.rules.subject_claim) == (30_000, "sub")
    assert settings.warnings() == []


def test_kafkas_classes_may_be_named_in_short() -> None:
    settings = oauth(
        **{
            HANDLER: "OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwt.validator.class": "BrokerJwtValidator",
        }
    )
    assert settings.keys is not None


def test_a_setting_for_the_mechanism_of_the_listener_precedes_the_general_one() -> None:
    prefix = "listener.name.sasl_plaintext.oauthbearer."
    settings = oauth(
        **{
            f"{prefix}{JWKS}": "https://other.example/jwks",
            f"{prefix}sasl.oauthbearer.sub.claim.name": "azp",
            f"{prefix}{HANDLER}": VALIDATOR_HANDLER,
            "sasl.login.read.timeout.ms": "700",
        }
    )
    assert settings.keys is not None
    assert (settings.keys.location.host, settings.rules.subject_claim) == ("other.example", "azp")
    assert settings.keys.read_timeout_ms == 700


def test_what_is_less_strict_than_it_should_be_is_told() -> None:
    loose = oauth(
        **{
            "sasl.oauthbearer.expected.issuer": None,
            "sasl.oauthbearer.expected.audience": None,
            JWKS: "http://idp.example/jwks",
            ALLOWED: "http://idp.example/jwks",
        }
    )
    assert list(loose.warnings()) == [
        "tokens of any issuer are accepted: set sasl.oauthbearer.expected.issuer",
        "only tokens without an audience (claim aud) are accepted: set sasl.oauthbearer.expected.audience",
        f"{JWKS} is not https: an attacker who modifies the response can forge tokens",
    ]


REFUSED: dict[str, tuple[dict[str, str | None], str]] = {
    "an address that is not listed": (
        {ALLOWED: "https://other.example/jwks"},
        "cannot be accessed due to restrictions",
    ),
    "no list": ({ALLOWED: None}, "cannot be accessed due to restrictions"),
    "no keys with the handler that verifies": ({JWKS: None, HANDLER: VALIDATOR_HANDLER}, "requires " + JWKS),
    "no keys for others than this machine": ({JWKS: None}, "tokens that anyone can create"),
    "unsecured tokens for others than this machine": ({HANDLER: UNSECURED_HANDLER}, "tokens that anyone can create"),
    "another handler": ({HANDLER: "com.example.Handler"}, "com.example.Handler is not known"),
    "a validator that does not verify": (
        {"sasl.oauthbearer.jwt.validator.class": f"{PACKAGE}.ClientJwtValidator"},
        "does not verify signatures",
    ),
    "another validator": ({"sasl.oauthbearer.jwt.validator.class": "com.example.V"}, "does not verify signatures"),
    "another scheme": ({JWKS: "ldap://x/y", ALLOWED: "ldap://x/y"}, "begins with https:, http:, file:"),
    "no claim for the subject": ({"sasl.oauthbearer.sub.claim.name": ""}, "must not be empty"),
    "a negative skew": ({"sasl.oauthbearer.clock.skew.seconds": "-1"}, "at least 0"),
    "no refresh": ({"sasl.oauthbearer.jwks.endpoint.refresh.ms": "0"}, "at least 1"),
    "another login module": (
        {
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": "org.apache.kafka.common.security.plain."
            "PlainLoginModule required;"
        },
        "cannot be used with OAUTHBEARER",
    ),
}


@pytest.mark.parametrize(("changed", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_at_start(changed: dict[str, str | None], reason: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        config(**changed)
    assert reason in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]"])
def test_unsecured_tokens_on_loopback(host: str) -> None:
    options = 'unsecuredValidatorPrincipalClaimName="name" unsecuredValidatorAllowableClockSkewMs="3000"'
    settings = oauth(
        **{
            "listeners": f"SASL_PLAINTEXT://{host}:9092",
            JWKS: None,
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{MODULE} {options};",
        }
    )
    assert settings.keys is None
    assert (settings.rules.subject_claim, settings.rules.clock_skew_ms) == ("name", 3000)
    assert settings.warnings() == ["unsecured tokens are accepted: every client that can connect can use any principal"]


@pytest.mark.parametrize("host", ["", "0.0.0.0", "[::]", "10.0.0.1", "localhost.example", "128.0.0.1"])
def test_unsecured_tokens_elsewhere_are_refused(host: str) -> None:
    with pytest.raises(InvalidConfig, match="tokens that anyone can create"):
        oauth(**{"listeners": f"SASL_PLAINTEXT://{host}:9092", JWKS: None})


def test_keys_win_over_unsecured_tokens_where_no_handler_is_named() -> None:
    """Kafka would accept unsecured tokens here."""
    assert oauth(listeners="SASL_PLAINTEXT://localhost:9092").keys is not None


def test_the_lists_may_come_as_system_properties() -> None:
    environment = {"KAFKA_OPTS": f"-Xmx1g -D{ALLOWED}={URL} -Djava.security.auth.login.config=/etc/jaas -Dx"}
    assert settings_of_environment(environment) == {ALLOWED: URL}
    assert oauth(**{ALLOWED: settings_of_environment(environment)[ALLOWED]}).keys is not None
