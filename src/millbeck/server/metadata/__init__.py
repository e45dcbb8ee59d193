"""The metadata quorum on this node: its driver, log, snapshots and connections, and channels to the controller."""
