"""``ssl.principal.mapping.rules``: maps the distinguished name of a client's certificate to its principal's name.

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/, RULE:^CN=(.*?)$/$1/L, DEFAULT

The first rule whose pattern matches the whole name decides; DEFAULT is the name itself. The patterns come from the
operator's own file, so Python's ``re`` is safe enough; its syntax differs from Java's only in rare constructs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidConfig

_RULE: Final = r"(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?))"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_REPLACEMENT_PARTS: Final = re.compile(r"\\(.)|\$(\d+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|([^\\$]+|.)", re.DOTALL)
_JAVA_GROUP_NAME: Final = re.compile(r"(?<!\\)\(\?<(?=[a-zA-Z])")


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
        mapped = self.pattern.sub(self._expand, name)
        return mapped.lower() if self.case == "L" else mapped.upper() if self.case == "U" else mapped

    def _expand(self, match: re.Match[str]) -> str:
        """Expand a replacement by Java's rules: ``$1`` is a group, and a character after a backslash is literal."""
        return "".join(
            _reference(number, match) if number else match[name] or "" if name else escaped or text
            for escaped, number, name, text in _REPLACEMENT_PARTS.findall(self.replacement)
        )


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
                self._rules.append(_Rule(re.compile(_JAVA_GROUP_NAME.sub("(?P<", parsed[2])), parsed[3], parsed[4]))
            except re.error as error:
                raise InvalidConfig(f"{setting}: the pattern {parsed[2]!r} is not usable: {error}") from error

    def name_of(self, distinguished_name: str) -> str:
        """The principal name for a distinguished name. Raises `NoRuleApplies`."""
        for rule in self._rules:
            mapped = distinguished_name if rule is None else rule.apply(distinguished_name)
            if mapped is not None:
                return mapped
        raise NoRuleApplies(distinguished_name)


def _reference(number: str, match: re.Match[str]) -> str:
    """The group number of a ``$number`` reference: the longest run of digits that is a group; otherwise the reference
    is literal."""
    groups = match.re.groups
    for digits in range(len(number), 0, -1):
        if int(number[:digits]) <= groups:
            return (match[int(number[:digits])] or "") + number[digits:]
    return f"${number}"
