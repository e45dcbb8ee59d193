"""An observer of a simulated cluster, which checks R1-R10 and D1-D10 after every iteration of the event loop."""
