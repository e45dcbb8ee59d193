"""JAAS configurations: what Kafka's files contain, and what must be refused."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.sasl.jaas import LoginModule, parse_jaas, plain_users

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SETTING = "listener.name.sasl.plain.sasl.jaas.config"


def test_a_login_module_with_options() -> None:
    entry = parse_jaas(f'{PLAIN} required username="admin" password="a;b=c" user_admin="a;b=c" user_al=x;', SETTING)
    assert entry.module is LoginModule.PLAIN
    assert entry.options["password"] == "a;b=c"
    assert plain_users(entry) == {"admin": "a;b=c", "al": "x"}


def test_a_login_module_may_be_named_in_short() -> None:
    entry = parse_jaas('ScramLoginModule required username="a" password="b";', SETTING)
    assert entry.module is LoginModule.SCRAM


def test_what_java_reads_is_read() -> None:
    text = f"""// users
    {PLAIN} REQUIRED /* the
    administrator */ user_a="\\"q\\"\\\\ \\101\\t" user_b='it"s'
    ;"""
    assert plain_users(parse_jaas(text, SETTING)) == {"a": '"q"\\ A\t', "b": 'it"s'}


def test_options_are_not_shown() -> None:
    assert "secret" not in repr(parse_jaas(f'{PLAIN} required password="secret";', SETTING))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Login module not specified in JAAS config"),
        (";", "Login module not specified in JAAS config"),
        (PLAIN, "Login module control flag not specified"),
        (f"{PLAIN} always;", "Login module control flag not specified"),
        (f"{PLAIN} required", "JAAS config entry not terminated by semi-colon"),
        (f'{PLAIN} required user_a="1"', "JAAS config entry not terminated by semi-colon"),
        (f"{PLAIN} required user_a;", "Value not specified for key 'user_a'"),
        (f"{PLAIN} required user_a=;", "Value not specified for key 'user_a'"),
        (f"{PLAIN} required user_a=123;", "cannot be read at character"),
        (f'{PLAIN} required user_a="open;', "cannot be read at character"),
        (f"{PLAIN} required; {PLAIN} required;", "contains 2 login modules, should be 1 module"),
        ("com.sun.security.auth.module.JndiLoginModule required;", "JndiLoginModule is not allowed as login module"),
        ("com.sun.security.auth.module.LdapLoginModule required;", "LdapLoginModule is not allowed as login module"),
        ("builtins.eval required;", "is not allowed as login module"),
        ("x" * (1024 * 1024 + 1), "longer than"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        parse_jaas(text, SETTING)
    assert reason in refusal.value.message
    assert refusal.value.message.startswith(SETTING)


def test_a_refusal_shows_no_value() -> None:
    with pytest.raises(InvalidConfig) as refusal:
        parse_jaas(f'{PLAIN} required username="admin" password="secret" user_x=1;', SETTING)
    assert "secret" not in str(refusal.value)
