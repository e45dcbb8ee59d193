"""The subcommands of ``millbeck connect`` that ask a worker of Kafka Connect."""
