"""Protobuf schemas: compiled by protoc, compared and printed from their descriptors.

schema          the format: texts, base64 of descriptors, the forms in which a text is asked for
files           the compiled files of a schema, with all that they import
printing        descriptors as a .proto
options         options as a .proto has them, those of extensions included
compatibility   whether one schema reads what another has written, by field numbers
"""
