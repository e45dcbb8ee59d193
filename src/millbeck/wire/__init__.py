"""Kafka's messages, each declared once for all its versions, and the codecs made from the declarations. Pure."""
