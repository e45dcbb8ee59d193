"""Validation of the schemas of produced records.

registered  the schemas of each subject after the records of ``_schemas``
reading     reads that topic from its leader while a topic of this broker needs it
validation  sets the accepted ids of topics with ``confluent.{key,value}.schema.validation``
"""
