"""The admin client: use `Admin`; the values that its methods take and return are in `results`."""

from millbeck.client.admin.client import Admin, AdminConfig

__all__ = ["Admin", "AdminConfig"]
