"""Schema formats: what a text means, its forms, and whether one schema reads what another has written.

interface            what the registry asks of a format
avro                 Avro's types, parsed from JSON
avro_text            Avro's types as text: canonical, normalised, resolved
avro_compatibility   Avro's resolution rules (reader and writer)
"""
