"""The cleaner: which compacted log is worth a run, the run beside the broker, and what becomes of it.

`service` decides and carries out, `work` is what the worker process does, `throttle` holds it back, `checkpoint`
remembers how far each log is clean, `statistics` and `metrics` tell how it goes. What a compaction is belongs to
`millbeck.storage.compaction`.
"""
