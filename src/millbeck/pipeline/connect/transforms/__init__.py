"""Single message transforms and predicates: Kafka's own, under their names, and the chain that applies them."""
