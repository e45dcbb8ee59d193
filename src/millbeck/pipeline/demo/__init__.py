"""The demo: joins orders with customers and computes revenue by region in windows of one minute, exactly once.

`orders` (the generator), `revenue` (the pipeline), `recount` (recomputes the result for comparison), `board` (the table
printed). Event time runs sixty times as fast as the clock, so that windows close during the demo.
"""
