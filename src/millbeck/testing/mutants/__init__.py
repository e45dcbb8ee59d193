"""Clusters broken on purpose, by name: what the simulation does not notice in them it would not notice in ours."""
