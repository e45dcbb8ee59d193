"""Converters between the bytes of keys, values and headers, and Connect's data."""
