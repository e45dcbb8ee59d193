"""Declarations of the broker options, one module per area; components read the section that they use."""
