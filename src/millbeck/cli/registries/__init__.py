"""``millbeck registry``: subjects, schemas and settings of a registry, directories of schemas, and moving all of it.

connection   which registry, and its errors as messages
subjects     subject and schema
levels       compat, mode and context
directory    a directory of schema files: subjects, references, order
applying     lint, diff and apply
moving       export, import and copy
"""
