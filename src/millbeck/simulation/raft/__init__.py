"""A simulation of only the quorum's state machines, with in-memory network and disks, from one seed: thousands of steps
per second.

world = RaftWorld(seed=7, voter_count=3, observer_count=1)
world.run(10_000)              # faults and all; raises `Violation`
world.heal_and_expect_progress()
"""
