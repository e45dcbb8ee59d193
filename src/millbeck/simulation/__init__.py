"""The simulator: whole nodes in one process, in virtual time, from one seed. `World` is the way in."""

from millbeck.simulation.environment.options import NetworkOptions, WorldOptions
from millbeck.simulation.environment.world import SimulationFailed, World

__all__ = ["NetworkOptions", "SimulationFailed", "World", "WorldOptions"]
