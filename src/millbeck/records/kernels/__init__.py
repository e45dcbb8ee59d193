"""The hot loops over records, as ordinary modules that are also compiled.

Each module here is typed Python that mypyc compiles into an extension beside it; without a compiler the Python file
itself runs, with the same results and the same bounds checks. ``MILLBECK_PURE=1`` in the environment takes the Python
files even where extensions exist. `COMPILED` says which is in use.
"""
