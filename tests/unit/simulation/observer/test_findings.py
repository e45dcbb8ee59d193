"""Violations say where and when; a checker that is left out says nothing."""

from __future__ import annotations

import pytest

from millbeck.simulation.observer.findings import InvariantBroken, Violations


def test_a_violation_names_everything_that_is_known() -> None:
    findings = Violations(lambda: 12.5)
    findings.expect(True, "D4", "b4/1", "t-0", 7, "holds")
    with pytest.raises(InvariantBroken) as caught:
        findings.expect(False, "D4", "b4/1", "t-0", 7, "went back")
    assert str(caught.value) == "D4 on b4/1, t-0 at offset 7, after 12.500 s: went back"
    assert findings.first is caught.value.violation
    assert findings.first is not None
    assert findings.first.anomaly().kind == "D4"


def test_an_omitted_invariant_is_not_checked() -> None:
    findings = Violations(lambda: 0.0, frozenset({"R1"}))
    findings.broken("R1", "c1/1", "", -1, "two leaders")
    assert findings.first is None
