"""Kafka Connect's REST interface: what each request means, apart from how it arrives."""
