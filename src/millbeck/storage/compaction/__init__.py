"""Log compaction: keep the latest record of each key.

`plan` decides whether a log can be compacted, and whether that is worthwhile; `compactor` compacts, as a pure function
of files (leased files in, new segments out) that runs on a thread, in a worker process or inline;
`millbeck.storage.swap` replaces the old segments by the new ones. Offsets and order never change: removed records leave
gaps.
"""
