"""OAuth 2.0 tokens: what a broker checks in one, the keys it checks them with, and how clients ask for them. Pure."""
