"""The node's metrics under Kafka's names, one module per component, and the HTTP endpoint that serves them.

Values are read from the components when the metrics are scraped. The controller's counts over all partitions of the
cluster are computed once per metadata image.
"""
