"""Run, monitor and restart pipelines defined in files: ``millbeck pipeline``.

`definition` (reads a pipeline file), `steps` (simple topologies in TOML), `progress` (Spark's progress reports as a
line and figures), `backoff` (restart delays), `supervisor` (restarts a killed run), `run_directory` (status and log of
a run), `metrics` and `metrics_server` (Prometheus), `runner` (needs pyspark: one run, from session to last batch).
"""
