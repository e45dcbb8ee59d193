"""The HTTP sink: records as requests to a web service."""
