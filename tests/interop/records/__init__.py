"""Our metadata records against Kafka's own classes."""
