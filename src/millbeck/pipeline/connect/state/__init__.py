"""The state that workers store in the log, in Kafka's formats: configurations, status and source offsets."""
