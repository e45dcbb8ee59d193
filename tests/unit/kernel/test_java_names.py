from __future__ import annotations

import pytest

from millbeck.kernel.java_names import full_name

KNOWN = ("org.apache.kafka.a.Some", "org.apache.kafka.b.Other", "plain")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Some", KNOWN[0]),
        (KNOWN[1], KNOWN[1]),
        ("plain", "plain"),
        ("a.Some", "a.Some"),
        ("None", "None"),
        ("", ""),
    ],
)
def test_a_class_may_be_named_without_its_package(given: str, expected: str) -> None:
    assert full_name(given, KNOWN) == expected
