"""Schema formats: parsing, text forms, and compatibility of schemas.

interface            the interface between the registry and a format
avro                 Avro's types, parsed from JSON
avro_text            Avro's types as text: canonical, normalised, resolved
avro_compatibility   Avro's resolution rules (reader and writer)
"""
