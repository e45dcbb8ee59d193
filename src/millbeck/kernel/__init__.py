"""The base package: names, errors, options, the environment's protocols, timers and waiting. No I/O."""
