"""The floor everything stands on: names, errors, options, the environment's protocols, time and waiting. Pure."""
