"""The schema registry: schemas with ids, versions and compatibility rules, kept in the topic ``_schemas``.

    log_records   the keys and values of ``_schemas``, byte for byte those of Confluent's registry
    state         what all records so far add up to; `RegistryState.replay` is the only thing that changes it
    registering, deleting, settings
                  decide: a request and the state give records and an answer, and change nothing

State machine and input/output are apart: everything named above runs without a log. The package reaches the log through
``millbeck.client`` only, so it works beside Apache Kafka too.
"""
