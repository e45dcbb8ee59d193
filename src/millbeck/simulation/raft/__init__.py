"""Only the state machines of the quorum, on an in-memory network and disks, from one seed: thousands of steps a second.

world = RaftWorld(seed=7, voter_count=3, observer_count=1)
world.run(10_000)              # faults and all; raises `Violation`
world.heal_and_expect_progress()
"""
