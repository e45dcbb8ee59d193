"""The options of a simulated world; they are printed when a run fails."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from millbeck.simulation.environment.disk_faults import DiskFaults


@dataclass(slots=True, kw_only=True)
class NetworkOptions:
    """Options of the network. Probabilities are per delivery or write; times are seconds."""

    latency_s: float = 0.0002
    jitter_s: float = 0.001
    spike: float = 0.001  # a lost packet: its retransmission delays everything behind it
    spike_s: float = 0.2
    torn_delivery: float = 0.1
    reset: float = 0.0
    socket_buffer_bytes: int = 128 << 10
    connect_timeout_s: float = 127.0


@dataclass(slots=True, kw_only=True)
class WorldOptions:
    network: NetworkOptions = field(default_factory=NetworkOptions)
    disk: DiskFaults = field(default_factory=DiskFaults)  # what the disk of each new node starts with
    thread_delay_s: float = 0.002
    worker_death: float = 0.0  # the chance of a job in a worker process to end with it, somewhere on the way
    order_is_drawn: bool = True
    is_strict: bool = True  # real clocks, randomness, files and sockets raise inside a node
    wall_start_ms: int = 1_700_000_000_000

    def disk_faults(self) -> DiskFaults:
        """A copy for one disk, which scenarios may change."""
        return replace(self.disk)

    @staticmethod
    def drawn(seed: int) -> WorldOptions:
        """Options drawn from a seed: each fault is off in some runs and frequent in others."""
        generator = random.Random(f"{seed}/options")
        pick = generator.choice
        return WorldOptions(
            network=NetworkOptions(
                latency_s=pick((0.0, 0.0002, 0.005)),
                jitter_s=pick((0.0, 0.001, 0.02)),
                spike=pick((0.0, 0.001, 0.01)),
                torn_delivery=pick((0.0, 0.1, 0.7)),
                reset=pick((0.0, 0.0, 0.0005)),
                socket_buffer_bytes=pick((4 << 10, 128 << 10, 2 << 20)),
            ),
            disk=DiskFaults(
                cold_read=pick((0.0, 0.05, 0.5)),
                sync_cost_s=pick((0.0, 0.001, 0.02)),
                slowness=pick((1.0, 1.0, 10.0)),
            ),
            thread_delay_s=pick((0.0, 0.002, 0.02)),
            worker_death=pick((0.0, 0.0, 0.2)),
        )
