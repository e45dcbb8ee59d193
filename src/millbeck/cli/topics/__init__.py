"""About topics and partitions: verbs of ``millbeck topic`` on records, and the JSON files that name partitions."""
