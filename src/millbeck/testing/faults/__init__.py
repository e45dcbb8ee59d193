"""What is done to a simulated cluster: a schedule of faults drawn from a seed, how each is done and undone, and the
budget that keeps the losses within what is promised."""
