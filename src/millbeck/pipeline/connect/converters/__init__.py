"""Converters: keys, values and headers to Connect's data and back."""
