"""Classic groups: members join, the leader assigns, everybody syncs."""
