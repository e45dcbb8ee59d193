"""Code of the topic commands: subcommands of ``millbeck topic`` on records, and the JSON files that name partitions."""
