"""Coverage-guided fuzzing of the parsers that read what strangers send, by atheris."""
