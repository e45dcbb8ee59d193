"""Talking to a Kafka broker, ours or another."""
