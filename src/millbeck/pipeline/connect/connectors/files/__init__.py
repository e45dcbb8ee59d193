"""Lines of files: Kafka's two example connectors."""
