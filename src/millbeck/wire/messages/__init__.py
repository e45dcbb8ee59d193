"""The declarations: one module per API, request and response together."""
