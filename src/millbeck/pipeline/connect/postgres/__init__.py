"""Changes of a PostgreSQL database, by its replication protocol, with Debezium's settings and records."""
