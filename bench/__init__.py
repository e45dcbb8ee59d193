"""Benchmarks: millbeck beside Apache Kafka on one machine, DESIGN's budgets, and cold reads under a memory limit."""
