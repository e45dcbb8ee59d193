"""The simulator: whole nodes in one process, in virtual time, from one seed. Start with `World`."""

from millbeck.simulation.environment.options import NetworkOptions, WorldOptions
from millbeck.simulation.environment.world import SimulationFailed, World

__all__ = ["NetworkOptions", "SimulationFailed", "World", "WorldOptions"]
