"""Parser of JAAS configurations for Kafka's login modules; no class is ever loaded.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

The value of ``sasl.jaas.config`` is one such entry: a login module, a control flag, options and a semicolon. It is read
by the rules of Java's StreamTokenizer as Kafka sets it up: quoted strings with escapes, unquoted words, comments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.security.sasl.exchange import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_SHA_256, SCRAM_SHA_512

JAAS_LENGTH_MAX: Final = 1024 * 1024


class LoginModule(Enum):
    """The supported login modules, by their Java names."""

    PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
    SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
    OAUTHBEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    GSSAPI = "com.sun.security.auth.module.Krb5LoginModule"


LOGIN_MODULES: Final[Mapping[str, LoginModule]] = {
    PLAIN: LoginModule.PLAIN,
    SCRAM_SHA_256: LoginModule.SCRAM,
    SCRAM_SHA_512: LoginModule.SCRAM,
    OAUTHBEARER: LoginModule.OAUTHBEARER,
    GSSAPI: LoginModule.GSSAPI,
}
"""The login module of each mechanism."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasEntry:
    module: LoginModule
    options: Mapping[str, str] = field(repr=False)
    """The options; not in the repr, because they may be passwords."""


_CONTROL_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_USER_PREFIX: Final = "user_"
_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$.\x80-\U0010ffff-]*)
    | (?P<sign>[=;])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_jaas(text: str, setting: str) -> JaasEntry:
    """Parse the value of ``sasl.jaas.config``; raises `InvalidConfig` that names the setting and shows no value."""
    if len(text) > JAAS_LENGTH_MAX:
        raise InvalidConfig(f"{setting}: longer than {JAAS_LENGTH_MAX} characters")
    tokens = _tokens(text, setting)
    if not tokens:
        raise InvalidConfig(f"{setting}: Login module not specified in JAAS config")
    entries = []
    position = 0
    while position < len(tokens):
        entry, position = _entry(tokens, position, setting)
        entries.append(entry)
    if len(entries) != 1:
        raise InvalidConfig(
            f"{setting}: JAAS config property contains {len(entries)} login modules, should be 1 module"
        )
    return entries[0]


def plain_users(entry: JaasEntry) -> dict[str, str]:
    """Passwords by user, from the options ``user_<name>`` of a PlainLoginModule."""
    return {
        name.removeprefix(_USER_PREFIX): password
        for name, password in entry.options.items()
        if name.startswith(_USER_PREFIX)
    }


def _tokens(text: str, setting: str) -> list[tuple[str, str]]:
    """The tokens as kind and text; quoted ones without quotes and escapes."""
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidConfig(
                f"{setting}: JAAS config cannot be read at character {position + 1}: put values into double quotes"
            )
        position = match.end()
        kind = match.lastgroup
        if kind == "quoted":
            tokens.append(("word", _ESCAPE.sub(_unescaped, match.group()[1:-1])))
        elif kind is not None and kind != "space":
            tokens.append((kind, match.group()))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _ESCAPED.get(escape, escape)


def _entry(tokens: list[tuple[str, str]], position: int, setting: str) -> tuple[JaasEntry, int]:
    kind, name = tokens[position]
    if kind != "word":
        raise InvalidConfig(f"{setting}: Login module not specified in JAAS config")
    try:
        module = LoginModule(full_name(name, (each.value for each in LoginModule)))
    except ValueError:
        known = ", ".join(each.value for each in LoginModule)
        raise InvalidConfig(f"{setting}: {name[:100]} is not allowed as login module; use one of {known}") from None
    flag = tokens[position + 1][1] if position + 1 < len(tokens) else ""
    if flag.lower() not in _CONTROL_FLAGS:
        raise InvalidConfig(
            f"{setting}: Login module control flag not specified in JAAS config: one of {', '.join(_CONTROL_FLAGS)}"
        )
    position += 2
    options: dict[str, str] = {}
    while position < len(tokens) and tokens[position] != ("sign", ";"):
        key = tokens[position][1]
        value = tokens[position + 1 : position + 3]
        if len(value) < 2 or value[0] != ("sign", "=") or value[1][0] != "word":
            raise InvalidConfig(f"{setting}: Value not specified for key '{key[:100]}' in JAAS config")
        options[key] = value[1][1]
        position += 3
    if position >= len(tokens):
        raise InvalidConfig(f"{setting}: JAAS config entry not terminated by semi-colon")
    return JaasEntry(module=module, options=options), position + 1
