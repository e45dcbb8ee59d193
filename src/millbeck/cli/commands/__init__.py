"""One module per command, with the helpers that only this command uses.

A module defines a click command named ``command``, which `cli.main` imports only when that command is run. A command
parses its options, calls a client through `cli.connection_options` (`target_options`, `run_admin`) and prints through
`cli.output`. Raise ``click.ClickException`` for a failure: it becomes one line on standard error and exit code 1. Do
not catch ``BrokenPipeError``: `cli.main` handles it with exit code 141.
"""
