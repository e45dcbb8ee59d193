from __future__ import annotations

import subprocess
import sys

import pytest

from millbeck.cli.suggestions import did_you_mean, nearest, settings_hint


def test_the_nearest_name_is_guessed() -> None:
    assert nearest("ordres", ["payments", "orders"]) == "orders"
    assert did_you_mean("ordres", ["payments", "orders"]) == ", did you mean orders?"


def test_what_looks_like_nothing_is_not_guessed() -> None:
    assert nearest("xyz", ["payments", "orders"]) is None
    assert did_you_mean("xyz", []) == ""


@pytest.mark.parametrize(
    ("name", "scope", "meant"),
    [
        ("retetion.ms", "topic", "retention.ms"),
        ("num.partition", "broker", "num.partitions"),
        ("consumer.sesion.timeout.ms", "group", "consumer.session.timeout.ms"),
    ],
)
def test_settings_are_guessed_among_those_of_their_scope(name: str, scope: str, meant: str) -> None:
    assert settings_hint([name], scope) == f"; did you mean {meant} instead of {name}?"


def test_settings_that_are_known_need_no_guess() -> None:
    assert settings_hint(["retention.ms"], "topic") == ""


def test_a_setting_that_kafka_has_removed_is_not_taken_for_a_mistyped_one() -> None:
    assert settings_hint(["log.message.format.version"], "broker") == ""


def test_a_huge_name_costs_no_time() -> None:
    assert nearest("x" * 1_000_000, ["orders"] * 5) is None


def test_nothing_is_loaded_before_there_is_something_to_guess() -> None:
    program = "import sys, millbeck.cli.suggestions; sys.exit('difflib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
