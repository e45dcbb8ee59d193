"""PostgreSQL's values in text form, and the schemas and values that Debezium makes of them."""
