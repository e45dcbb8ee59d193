"""The node: `node` wires it, the role modules build the broker and the controller, each package is one component."""
