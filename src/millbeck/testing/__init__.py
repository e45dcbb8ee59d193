"""A broker for tests: the pytest plugin and the simulator."""
