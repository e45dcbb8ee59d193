"""The schema registry: schemas with ids, versions and compatibility rules, kept in the topic ``_schemas``.

    state         the state after all records so far; only `RegistryState.replay` changes it
    registering, deleting, settings decisions: from a request and the state to records and an answer, without changes

The state machine is separate from I/O: all modules above run without a log. The package accesses the log only through
``millbeck.client``, so it also works with Apache Kafka.
"""
