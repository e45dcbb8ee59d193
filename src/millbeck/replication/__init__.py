"""Partitions as the node serves them: leader epoch, high watermark, waits."""
