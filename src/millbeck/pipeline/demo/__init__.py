"""The demo: orders and customers become revenue by region in windows of five minutes, exactly once, log to log.

`orders` (what is generated), `revenue` (the pipeline), `recount` (the same by plain counting), `board` (the table
that is shown). Event time runs sixty times as fast as the clock, so that windows close while one looks on.
"""
