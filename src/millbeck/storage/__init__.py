"""The log of one partition in Kafka's directory format, and the log directory that holds many of them.

Everything here is synchronous and takes ``now_ms`` as an argument. Slow work (fsync, large unlinks, the scrub) is
prepared on the event loop as a job whose ``run`` touches only the files passed to it; `server` runs the job on a
thread and hands the result back. `log.Log` is the central class; `directory.LogDirectory` opens, creates and deletes
logs.

What a crash may lose: batches below the recovery point are durable, with all their metadata. Above the recovery point,
`recovery` truncates the log at the first batch that is corrupt or does not continue the one before it. A rename or
truncation that later writes rely on is synced before them: after a failed write or a truncation, no write is accepted
until a flush has synced the truncation, and recovery syncs the last file it finds, because a truncation before the
crash may not have been synced. Retention makes the producer snapshot of a segment durable before it deletes the
segment's files.
"""
