"""Streams groups (KIP-1071): groups of Kafka Streams applications, whose tasks the coordinator assigns."""
