"""The log cleaner: choose a compacted log, compact it in a worker process, and install the result.

`service` chooses logs and installs results, `work` runs in the worker process, `throttle` limits its I/O rate,
`checkpoint` stores the offset up to which each log is clean, `statistics` and `metrics` report on it. The compaction
algorithm is in `millbeck.storage.compaction`.
"""
