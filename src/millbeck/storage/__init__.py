"""One partition's log in Kafka's directory format, and the directory it lives in."""
