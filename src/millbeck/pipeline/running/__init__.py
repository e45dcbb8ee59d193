"""Pipelines as files, run, watched and recovered: ``millbeck pipeline``.

`definition` (a pipeline file becomes a `Definition`), `steps` (the simple ones, in TOML), `progress` (what Spark
reports becomes a line and figures), `backoff` (when to try again), `keeper` (starts a killed run again),
`run_directory` (what a run leaves to be looked at), `metrics` and
`metrics_server` (the same for Prometheus), `runner` (needs pyspark: one run, from session to last batch).
"""
