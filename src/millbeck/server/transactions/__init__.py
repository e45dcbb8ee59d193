"""Transactions on the partitions this node leads: verification of writes, and markers."""
