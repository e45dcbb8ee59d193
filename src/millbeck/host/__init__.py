"""The real machine behind the kernel's protocols, and the only package that touches it."""
