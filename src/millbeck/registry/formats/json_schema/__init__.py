"""JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12.

schema          the format: validity by jsonschema-rs, the forms of a text
drafts          the draft of a schema, and the differences between drafts
documents       a schema with its references; resolves ``$ref``, never over the network
cycles          detection of endless references
conjuncts       a schema as parts that must all hold
compatibility   whether one schema accepts every document that another one does
objects, arrays, scalars
                the compatibility of the keywords of one type
"""
