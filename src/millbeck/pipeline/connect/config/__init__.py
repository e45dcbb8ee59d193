"""Settings of workers, connectors, converters and transforms: declared once, checked as Kafka Connect checks them."""
