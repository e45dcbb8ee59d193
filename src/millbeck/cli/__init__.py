"""The millbeck command."""
