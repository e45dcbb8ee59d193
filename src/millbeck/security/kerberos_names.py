"""``sasl.kerberos.principal.to.local.rules``: maps Kerberos names to the names of principals, as Kafka and Hadoop do.

    RULE:[1:$1@$0](.*@EXAMPLE\\.COM)s/@.*//L, RULE:[2:$1](app)s/^app$/service/, DEFAULT

``[n:format]`` applies to names with n components and builds a name from them: ``$1`` and ``$2`` are the components,
``$0`` is the realm. The rule is skipped unless that name matches the pattern in parentheses; then ``s/pattern/text/``
is applied to it. DEFAULT returns the first component if the realm is the default one. The first rule that applies is
used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.java_regex import compiled, replaced

_NAME: Final = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE: Final = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<count>\d*):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER: Final = re.compile(r"\$(\d*)")
_NOT_SIMPLE: Final = re.compile("[/@]")
_COMPONENTS_MAX: Final = 2


class NoKerberosRule(Exception):
    """A name is malformed, or no rule applies to it; the message is for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    count: int
    form: str
    matching: re.Pattern[str] | None
    pattern: re.Pattern[str] | None
    replacement: str
    replaces_all: bool
    case: str

    def apply(self, parts: list[str]) -> str | None:
        """``parts`` are the realm and then the components."""
        if len(parts) - 1 != self.count:
            return None
        name = _PARAMETER.sub(lambda found: parts[int(found[1])], self.form)
        if self.matching is not None and self.matching.fullmatch(name) is None:
            return None
        if self.pattern is not None:
            name = replaced(self.pattern, self.replacement, name, first_only=not self.replaces_all)
        _check_simple(name)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class KerberosNames:
    def __init__(
        self, rules: Iterable[str], default_realm: str, setting: str = "sasl.kerberos.principal.to.local.rules"
    ) -> None:
        """Parse the rules; raises `InvalidConfig` for a malformed one."""
        self._default_realm = default_realm
        self._rules = [_parsed(rule, setting) for rule in rules]

    def short_name(self, name: str) -> str:
        """The principal's name for a Kerberos name. Raises `NoKerberosRule`."""
        found = _NAME.fullmatch(name)
        if found is None:
            if "@" in name:
                raise NoKerberosRule(f"malformed Kerberos name {name!a}")
            found = _NAME.fullmatch(f"{name}@{self._default_realm}")
            if found is None:
                raise NoKerberosRule(f"malformed Kerberos name {name!a}")
        parts = [found[3], found[1], *([] if found[2] is None else [found[2]])]
        for rule in self._rules:
            short = self._default(parts) if rule is None else rule.apply(parts)
            if short:
                return short
        raise NoKerberosRule(f"no rule applies to {name!a}")

    def _default(self, parts: list[str]) -> str | None:
        return parts[1] if self._default_realm and parts[0] == self._default_realm else None


def _parsed(rule: str, setting: str) -> _Rule | None:
    """A rule; None for DEFAULT."""
    found = _RULE.fullmatch(rule)
    if found is None:
        raise InvalidConfig(
            f"{setting}: {rule[:200]!r} is not a rule: expected DEFAULT or RULE:[n:format](regex)s/pattern/replacement/"
        )
    if found["default"]:
        return None
    count = int(found["count"] or 0)
    if not 1 <= count <= _COMPONENTS_MAX:
        raise InvalidConfig(f"{setting}: {rule[:200]!r}: names have 1 or {_COMPONENTS_MAX} components, not {count}")
    for number in _PARAMETER.findall(found["format"]):
        if not number or int(number) > count:
            raise InvalidConfig(f"{setting}: {rule[:200]!r}: ${number} is not one of $0 to ${count}")
    try:
        return _Rule(
            count=count,
            form=found["format"],
            matching=None if found["match"] is None else compiled(found["match"]),
            pattern=None if found["pattern"] is None else compiled(found["pattern"]),
            replacement=found["replacement"] or "",
            replaces_all=found["all"] is not None,
            case=found["case"] or "",
        )
    except re.error as error:
        raise InvalidConfig(f"{setting}: {rule[:200]!r}: the pattern is not usable: {error}") from error


def _check_simple(name: str) -> None:
    if _NOT_SIMPLE.search(name):
        raise NoKerberosRule(f"a rule makes {name!a}, which is no simple name")
