"""Group commands: options of ``millbeck group`` and ``millbeck share``, new positions, dead-letter topics."""
