"""Deliberate mistakes in the code, by name; each must be detected by the simulation."""
