"""``millbeck registry``: manage subjects, schemas and settings, apply directories of schemas, export and import.

connection   which registry, and its errors as messages
subjects     subject and schema
levels       compat, mode and context
directory    a directory of schema files: subjects, references, order
applying     lint, diff and apply
moving       export, import and copy
repairing    repair
passwords    password
"""
