"""What Spark's tasks do: read or write one share, from the connector's object to the log or back."""
