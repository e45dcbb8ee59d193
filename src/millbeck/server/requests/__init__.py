"""Request handling: dispatch, the routes, forwarding to the controller, and one handler module per API family."""
