"""What every source of randomness promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import uuid_text

if TYPE_CHECKING:
    from tests.contract.conftest import Machine


def test_numbers_are_below_the_bound_and_reach_all_of_it(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        return [environment.randomness.below(3) for _ in range(200)]

    assert set(machine.run(scenario)) == {0, 1, 2}


def test_uuids_are_random_version_4_and_never_look_like_a_flag(machine: Machine) -> None:
    async def scenario(environment: Environment) -> object:
        return [environment.randomness.uuid() for _ in range(1000)]

    drawn = machine.run(scenario)
    assert len(set(drawn)) == 1000
    for value in drawn:
        assert len(value) == 16
        assert value[6] >> 4 == 4
        assert value[8] >> 6 == 2
        assert not uuid_text(value).startswith("-")
