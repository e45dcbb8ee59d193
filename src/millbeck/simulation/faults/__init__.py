"""Faults of a simulated cluster: a schedule drawn from a seed, how each is injected and repaired, and the
budget that keeps the losses within what is promised."""
