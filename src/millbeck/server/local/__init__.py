"""Nodes on one host with built-in default settings: formatting, a single node, and small clusters."""
