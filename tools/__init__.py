"""Tools of this tree: environments, compiled modules, generated pages, peers; ``python -m tools.NAME`` at its root."""
