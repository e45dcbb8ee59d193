"""Compaction: a log as a table that keeps the latest record of each key.

`plan` looks at a log and says what of it is worth compacting and can be; `compactor` does it, as a pure function of
files (leased files in, new segments out) that runs on a thread, in a worker process or inline; `millbeck.storage.swap`
puts the new segments in the place of the old ones. Offsets and order never change: what goes leaves gaps.
"""
