"""One partition's log in Kafka's directory format, and the log directory that holds many of them.

Everything here is synchronous and takes ``now_ms`` as an argument. What may be slow (fsync, big unlinks, the scrub) is
prepared on the loop as a job whose ``run`` touches only the files it was given; `server` runs it on threads and hands
the result back. `log.Log` is the centre; `directory.LogDirectory` opens, creates and deletes logs.
"""
