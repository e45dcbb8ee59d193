"""Kafka's protocol: messages, each declared once for all its versions, and codecs generated from them. Pure."""
