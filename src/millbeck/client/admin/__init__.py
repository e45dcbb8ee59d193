"""Administrative calls. `Admin` is the door; the values its methods take and return are in `results`."""

from millbeck.client.admin.client import Admin, AdminConfig

__all__ = ["Admin", "AdminConfig"]
