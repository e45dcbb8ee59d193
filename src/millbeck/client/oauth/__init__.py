"""OAUTHBEARER on the client's side: settings, and the tokens they lead to."""
