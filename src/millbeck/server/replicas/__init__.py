"""The replicas on this node: logs, leaders and followers, fetchers, ISR changes, moves and repair."""
