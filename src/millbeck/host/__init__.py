"""The implementation of the kernel's protocols on the real machine; the only package that accesses it.

Features of Linux alone (non-blocking page cache reads, starting writeback, sendfile, fallocate) are used only on
Linux, and ``real_environment(portable=True)`` disables all of them, which is how a macOS host runs.
"""

from millbeck.host.environment import real_environment

__all__ = ["real_environment"]
