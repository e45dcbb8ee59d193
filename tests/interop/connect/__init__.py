"""Connect's converters, transforms and predicates against Kafka's own classes."""
