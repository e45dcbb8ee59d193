"""Groups of the classic protocol: members join, the leader computes the assignment, and every member syncs."""
