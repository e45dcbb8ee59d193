"""The registry over HTTP, with the routes, bodies and error codes of Confluent's registry.

    calls         the declaration of a call; routing and OpenAPI are derived from it
    requests      parsing and validation of one request
    schemas, subjects, settings
                  the calls
    forwarding    sends a request to the leader
    app           the ASGI application: routing, forwarding, errors, metrics
    config        the settings, under Confluent's keys
    serving       runs it all in one process

Needs the extra ``millbeck[registry]``.
"""
