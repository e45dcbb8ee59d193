"""Faults of a simulated cluster: a schedule drawn from a seed, how each is injected and repaired, and the budget that
limits data losses to what the guarantees allow."""
