"""The registry of ``millbeck up --secure``: TLS with a node's certificate, and the cluster's users and passwords.

Its files are beside the other files of clients: ``app.registry.json`` for Confluent's client for Python, ``app.curl``
for curl. ``app`` registers schemas, ``admin`` may do everything.
"""

from __future__ import annotations

import json
from typing import Final

from millbeck.kernel.environment import Environment
from millbeck.kernel.properties import properties_text
from millbeck.registry.access import SALT_BYTES, hashed_password
from millbeck.server.local.secured import ADMIN, APP, SecuredCluster
from millbeck.storage.atomic_file import replace_file

CONFIG_FILE: Final = "registry.properties"
USERS_FILE: Final = "registry-users.toml"
_ROLES: Final = {ADMIN: "admin:", APP: "write:"}


def write_config(environment: Environment, secured: SecuredCluster, *, certificate_file: str, bootstrap: str) -> str:
    """Write the registry's configuration and its users; returns the path of the configuration."""
    users = f"{secured.directory}/{USERS_FILE}"
    if not environment.files.exists(users):
        # The passwords of the cluster's users do not change.
        replace_file(environment.files, users, _users(environment, secured).encode(), is_private=True)
    store = {f"kafkastore.{name}": value for name, value in secured.clients(ADMIN, bootstrap).java.items()}
    settings = {
        **store,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificate_file,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secured.authority_file,
        "authentication.method": "BASIC",
        "millbeck.users.file": users,
    }
    path = f"{secured.directory}/{CONFIG_FILE}"
    replace_file(environment.files, path, properties_text(settings).encode(), is_private=True)
    return path


def _users(environment: Environment, secured: SecuredCluster) -> str:
    lines = []
    for user, role in _ROLES.items():
        salt = environment.randomness.below(1 << (8 * SALT_BYTES)).to_bytes(SALT_BYTES, "big")
        hashed = hashed_password(secured.passwords[user], salt)
        lines.append(f'[users.{user}]\npassword = "{hashed}"\nroles = ["{role}"]\n')
    return "\n".join(lines)


def write_client_files(environment: Environment, secured: SecuredCluster, url: str) -> None:
    """Write what clients of the registry need."""
    for user in _ROLES:
        credentials = f"{user}:{secured.passwords[user]}"
        client = {"url": url, "basic.auth.user.info": credentials, "ssl.ca.location": secured.authority_file}
        curl = f'user = "{credentials}"\ncacert = "{secured.authority_file}"\n'
        for name, text in ((f"{user}.registry.json", json.dumps(client, indent=2) + "\n"), (f"{user}.curl", curl)):
            replace_file(environment.files, f"{secured.directory}/{name}", text.encode(), is_private=True)
