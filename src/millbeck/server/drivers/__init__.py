"""The state machines' connection to the world: each driver runs one of them on the loop, the disk and the network."""
