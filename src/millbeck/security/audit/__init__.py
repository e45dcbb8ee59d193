"""The audit: who logged in, what was denied, what administrators changed. Events, and the folding of repeats."""
