"""Coordinators as pure state machines: one shard per partition of an internal topic."""
