"""The audit of logins, denied operations and administrative changes: events, and the folding of repeated ones."""
