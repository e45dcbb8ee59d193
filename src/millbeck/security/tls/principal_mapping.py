"""``ssl.principal.mapping.rules``: maps the distinguished name of a client's certificate to its principal's name.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?)$/$1/L, DEFAULT

The first rule whose pattern matches the whole name decides; DEFAULT is the name itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.java_regex import compiled, replaced

_RULE: Final = r"(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?))"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")


class NoRuleApplies(Exception):
    """No rule matches the name, so the client has no principal."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str]
    replacement: str
    case: str

    def apply(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        mapped = replaced(self.pattern, self.replacement, name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped


class PrincipalMapping:
    def __init__(self, text: str, setting: str = "ssl.principal.mapping.rules") -> None:
        """Parse the rules; raises `InvalidConfig` for a malformed rule. Empty rules are skipped, as by Kafka."""
        self._rules: list[_Rule | None] = []  # None: the name itself
        for found in _SPLITTER.finditer(text.strip()):
            rule = found[1]
            if not rule:
                continue
            parsed = _PARSER.match(rule)
            if parsed is None or parsed.end() != len(rule):
                raise InvalidConfig(
                    f"{setting}: {rule!r} is not a rule: expected DEFAULT or RULE:pattern/replacement/[L|U]"
                )
            if parsed[1]:
                self._rules.append(None)
                continue
            try:
                self._rules.append(_Rule(compiled(parsed[2]), parsed[3], parsed[4]))
            except re.error as error:
                raise InvalidConfig(f"{setting}: the pattern {parsed[2]!r} is not usable: {error}") from error

    def name_of(self, distinguished_name: str) -> str:
        """The principal name for a distinguished name. Raises `NoRuleApplies`."""
        for rule in self._rules:
            mapped = distinguished_name if rule is None else rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        raise NoRuleApplies(distinguished_name)
