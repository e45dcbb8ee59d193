"""JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12.

schema          the format: validity by jsonschema-rs, the forms of a text
drafts          which draft a schema is of, and how drafts spell the same thing
documents       a schema with what it refers to; finds what a ``$ref`` means, never over the network
cycles          references that no validator could ever follow to an end
conjuncts       a schema as parts that must all hold
compatibility   whether one schema accepts every document that another one does
objects, arrays, scalars
                the same for the keywords of one type
"""
