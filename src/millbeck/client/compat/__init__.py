"""Modules with the names and signatures of other Kafka clients for Python."""
