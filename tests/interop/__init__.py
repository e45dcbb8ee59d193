"""Real clients against a real node: the same questions put to every Kafka client, and answers checked in the log."""
