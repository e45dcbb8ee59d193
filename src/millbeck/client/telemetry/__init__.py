"""Client metrics that are pushed to brokers which ask for them (KIP-714)."""
