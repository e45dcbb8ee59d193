"""Protobuf schemas: compiled by protoc, compared and printed from their descriptors.

schema          the format: texts, descriptors in base64, the forms of a text
files           the compiled files of a schema, with all imports
printing        descriptors as a .proto
options         options as a .proto has them, those of extensions included
compatibility   whether one schema reads what another has written, by field numbers
"""
