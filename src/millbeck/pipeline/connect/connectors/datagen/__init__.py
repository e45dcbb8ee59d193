"""The generator: records of chance, for demonstrations and tests of load."""
