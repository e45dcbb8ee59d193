"""The simulator: whole nodes in one process, in virtual time, from one seed. `World` is the way in."""

from millbeck.testing.sim.options import NetworkOptions, WorldOptions
from millbeck.testing.sim.world import SimulationFailed, World

__all__ = ["NetworkOptions", "SimulationFailed", "World", "WorldOptions"]
