"""The rules that ship for Prometheus: as much of YAML as they use, and the names in their expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "ops" / "prometheus" / "millbeck.rules.yml"
DASHBOARD = ROOT / "ops" / "grafana" / "millbeck.json"

OF_TARGETS = frozenset({"cluster", "instance", "job"})
"""Labels that Prometheus adds."""
_KEYWORDS = frozenset({"and", "or", "unless", "bool", "offset", "on", "ignoring", "group_left", "group_right", "by"})
_LINE = re.compile(r"( *)(- )?([a-z]+): ?(.*)")
_GROUPING = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"([a-z_:][a-zA-Z0-9_:]*)\s*\{([^}]*)\}")
_MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(?:=~|!=|!~|=)\s*"[^"]*"\s*,?')


@dataclass(slots=True, kw_only=True)
class Rule:
    kind: str
    name: str
    expr: str = ""
    hold: str = ""
    severity: str = ""
    annotations: dict[str, str] = field(default_factory=dict)


def read_rules(text: str | None = None) -> list[Rule]:
    """Every rule of the file; fails on a line that is none of its shape."""
    lines = (RULES.read_text(encoding="utf-8") if text is None else text).splitlines()
    rules: list[Rule] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match is not None, line
        assert len(match[1]) % 2 == 0, line
        indent, key, value = len(match[1]) + len(match[2] or ""), match[3], match[4]
        if value == ">-":
            folded = []
            while position < len(lines) and lines[position].startswith(" " * (indent + 2)):
                folded.append(lines[position].strip())
                position += 1
            _take(rules, key, " ".join(folded))
        else:
            _take(rules, key, _plain(value))
    return rules


def _plain(value: str) -> str:
    """A scalar; without quotes it must hold nothing that YAML would read otherwise."""
    if value.startswith('"'):
        assert value.endswith('"'), value
        assert '"' not in value[1:-1], value
        return value[1:-1]
    assert ": " not in value, value
    assert " #" not in value, value
    assert not value.startswith(tuple("{}[]&*!|>%@`'")), value
    return value


def _take(rules: list[Rule], key: str, value: str) -> None:
    if key in ("alert", "record"):
        rules.append(Rule(kind=key, name=value))
    elif key in ("groups", "name", "rules", "labels", "annotations"):
        assert key == "name" or not value, key
    elif key == "expr":
        rules[-1].expr = value
    elif key == "for":
        rules[-1].hold = value
    elif key == "severity":
        rules[-1].severity = value
    else:
        assert key in ("summary", "description"), key
        rules[-1].annotations[key] = value


def metric_names(expression: str) -> set[str]:
    """The names that an expression asks for."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]", "", expression)
    bare = _GROUPING.sub("", bare)
    found = re.finditer(r"(?<![\w:.$])([a-zA-Z_:][\w:]*)\b(?!\s*\()", bare)
    return {match[1] for match in found} - _KEYWORDS - {"sum", "max", "min", "count", "avg", "topk"}


def labels_by_metric(expression: str) -> dict[str, set[str]]:
    """The labels by which each metric is selected."""
    found: dict[str, set[str]] = {}
    for name, selector in _SELECTOR.findall(expression):
        rest = _MATCHER.sub("", selector)
        assert not rest.strip(), selector
        found.setdefault(name, set()).update(_MATCHER.findall(selector))
    return found


def grouping_labels(expression: str) -> set[str]:
    return {label.strip() for group in _GROUPING.findall(expression) for label in group.split(",") if label.strip()}
