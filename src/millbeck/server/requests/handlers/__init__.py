"""Request handlers, one module per API family: authorize, call a log or a coordinator, build the response;
stateless."""
