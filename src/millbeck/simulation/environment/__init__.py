"""The simulated machines: clock, disk, network, threads and processes in virtual time, from one seed."""
