"""Nodes decide by the ACLs of their metadata; and the run is not blind: each mutant is caught."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.security import acl_index, standard_authorizer
from millbeck.security.acl_index import AclGroup, AclIndex
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.simulation.runs.permissions_run import DECISIONS, PermissionsRun


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_node_decides_by_the_acls_of_its_metadata(number: int) -> None:
    anomalies = PermissionsRun(number).run()
    assert not anomalies, f"seed {number}\n" + "\n".join(map(str, anomalies[:10]))


def _decisions_survive_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandardAuthorizer, "_changed", lambda self: None)


def _removals_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    original = StandardAuthorizer.change
    monkeypatch.setattr(StandardAuthorizer, "change", lambda self, removed, added: original(self, (), added))


def _large_changes_only_add(monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(self: StandardAuthorizer, entries: Any) -> Any:
        yield from self._index.add_all(entries)
        self._changed()

    monkeypatch.setattr(StandardAuthorizer, "replace", replace)


def _denials_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    original = AclGroup._count

    def count(self: AclGroup, entry: Any) -> None:
        original(self, entry)
        self.denied = 0

    monkeypatch.setattr(AclGroup, "_count", count)


def _prefixes_are_compared_as_names(monkeypatch: pytest.MonkeyPatch) -> None:
    original = AclIndex.covering

    def covering(self: AclIndex, resource_type: int, name: str) -> Any:
        found = [self._patterns.get((resource_type, True, name))]
        self._prefix_lengths, lengths = {}, self._prefix_lengths
        try:
            return original(self, resource_type, name) + [each for each in found if each is not None]
        finally:
            self._prefix_lengths = lengths

    monkeypatch.setattr(AclIndex, "covering", covering)


def _hosts_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_index, "canonical_host", lambda host: "*")
    monkeypatch.setattr(standard_authorizer, "canonical_host", lambda host: "*")


def _superusers_by_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    original = StandardAuthorizer._decide

    def decide(self: StandardAuthorizer, principal: str, *rest: Any) -> int:
        is_super = any(principal.startswith(each) for each in self.super_users)
        return acl_index.EVERY_OPERATION if is_super else original(self, principal, *rest)

    monkeypatch.setattr(StandardAuthorizer, "_decide", decide)


def _denials_imply(monkeypatch: pytest.MonkeyPatch) -> None:
    original = acl_index._masks

    def masks(entry: Any) -> tuple[int, int]:
        allowed, denied = original(entry)
        return allowed, denied | (acl_index._IMPLIED.get(entry.operation, 0) if denied else 0)

    monkeypatch.setattr(acl_index, "_masks", masks)


@pytest.mark.parametrize(
    "mutate",
    [
        _decisions_survive_a_change,
        _removals_are_forgotten,
        _large_changes_only_add,
        _denials_are_ignored,
        _prefixes_are_compared_as_names,
        _hosts_are_ignored,
        _superusers_by_prefix,
        _denials_imply,
    ],
)
def test_mutants_are_caught(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    assert any(anomaly.kind == DECISIONS for number in (1, 2, 3) for anomaly in PermissionsRun(number).run())
