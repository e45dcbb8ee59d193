"""What workers keep in the log, in Kafka's formats: configurations, status and offsets of sources."""
