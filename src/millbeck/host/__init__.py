"""The real machine behind the kernel's protocols; the only package that touches it.

What Linux alone has (reads that refuse to wait, started writeback, sendfile, fallocate) is used only when the platform
says so, and ``real_environment(portable=True)`` switches all of it off, which is how a macOS host runs.
"""

from millbeck.host.environment import real_environment

__all__ = ["real_environment"]
