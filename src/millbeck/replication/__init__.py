"""Partitions on a broker: leader and follower state, high watermark, ISR, and delayed appends."""
