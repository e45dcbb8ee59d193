"""OAUTHBEARER on the client's side: settings and token retrieval."""
