"""The base package: identifiers, errors, options, the environment's protocols, timers, deferred responses and metrics.
No I/O."""
