"""Message declarations: one module per family of APIs, requests and responses together."""
