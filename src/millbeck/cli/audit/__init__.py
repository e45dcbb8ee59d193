"""What ``millbeck audit`` reads and shows."""
