"""Rules from Kerberos names to principals' names: what Kafka's KerberosShortNamer makes of the same."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.kerberos_names import KerberosNames, NoKerberosRule

REALM = "REALM.COM"
# Those of Kafka's own test of this class, and more.
RULES = (
    "RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g",
    "RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("rules", "name", "short"),
    [
        (RULES, "App.service-name/example.com@REALM.COM", "service-name"),
        (RULES, "App.service-name@REALM.COM", "service-name"),
        (RULES, "user/host@REALM.COM", "user"),
        (RULES, "user@REALM.COM", "user"),
        (RULES, "user", "user"),
        (("RULE:[1:$1]/L",), "User@OTHER", "user"),
        (("RULE:[2:$1]/L",), "TestABC/host@FOO.COM", "testabc"),
        (("RULE:[2:$1](Test.*)s/ABC///L",), "TestABC/host@FOO.COM", "test"),
        (("RULE:[1:$1]/U",), "User@OTHER", "USER"),
        (("RULE:[1:$1@$0](.*@OTHER)s/@.*//",), "alice@OTHER", "alice"),
        (("RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"), "alice@REALM.COM", "alice"),
        (("RULE:[2:$1-$2]",), "kafka/host@OTHER", "kafka-host"),
        (("RULE:[1:$1](a.*)s/a/b/",), "aaa@OTHER", "baa"),
        (("RULE:[1:$1](a.*)s/a/b/g",), "aaa@OTHER", "bbb"),
        (("RULE:[1:$1](a.*)s/a(.*)/$1-x/",), "abc@OTHER", "bc-x"),
    ],
)
def test_names(rules: tuple[str, ...], name: str, short: str) -> None:
    assert KerberosNames(rules, REALM).short_name(name) == short


@pytest.mark.parametrize(
    ("rules", "name", "reason"),
    [
        (("DEFAULT",), "alice@OTHER", "no rule applies"),
        (("DEFAULT",), "alice@realm.com", "no rule applies"),
        (("RULE:[1:$1]",), "kafka/host@REALM.COM", "no rule applies"),
        (("RULE:[2:$1]",), "alice@REALM.COM", "no rule applies"),
        (("RULE:[1:$1](bob)",), "bobby@REALM.COM", "no rule applies"),
        (("RULE:[1:$1@$0]", "DEFAULT"), "alice@REALM.COM", "no simple name"),
        (("RULE:[1:$1](.*)s/.*//",), "alice@REALM.COM", "no rule applies"),
        (("DEFAULT",), "a/b/c@REALM.COM", "malformed"),
        (("DEFAULT",), "admin\\@OTHER@REALM.COM", "malformed"),
        (("DEFAULT",), "a@b@REALM.COM", "malformed"),
        (("DEFAULT",), "a/b/c", "malformed"),
        (("DEFAULT",), "@REALM.COM", "no rule applies"),
        (("DEFAULT",), "WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS", "no rule applies"),
        ((), "alice@REALM.COM", "no rule applies"),
    ],
)
def test_names_without_a_principal(rules: tuple[str, ...], name: str, reason: str) -> None:
    with pytest.raises(NoKerberosRule, match=reason):
        KerberosNames(rules, REALM).short_name(name)


def test_without_a_default_realm_the_rule_default_applies_to_nobody() -> None:
    with pytest.raises(NoKerberosRule):
        KerberosNames(("DEFAULT",), "").short_name("alice@")


@pytest.mark.parametrize(
    "rule",
    [
        "default",
        "DEFAULT/L/g",
        "RULE:[1:$1](.*)s/a/b/g/L/g",
        "RULE:[1:$1",
        "RULE:[0:$1]",
        "RULE:[3:$3]",
        "RULE:[:$1]",
        "RULE:[1:$2]",
        "RULE:[1:$]",
        "RULE:[1:$1](()",
        "RULE:[1:$1](a)s/(/b/",
    ],
)
def test_malformed_rules_are_named(rule: str) -> None:
    with pytest.raises(InvalidConfig, match=r"sasl.kerberos.principal.to.local.rules: "):
        KerberosNames((rule,), REALM)
