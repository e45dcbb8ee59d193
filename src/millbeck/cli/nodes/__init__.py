"""Run nodes as processes: start, supervise, stop and check them."""
