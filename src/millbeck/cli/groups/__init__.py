"""About groups: options of ``millbeck group`` and ``millbeck share``, new positions, dead-letter topics."""
