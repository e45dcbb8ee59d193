"""The real machine behind the kernel's protocols: the only package that touches clocks, randomness, files, sockets and threads."""
