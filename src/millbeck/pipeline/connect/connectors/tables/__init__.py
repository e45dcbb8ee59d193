"""The sinks of table formats: Iceberg by pyiceberg, Delta Lake by deltalake.

Tasks write Parquet files; the worker commits all files of a turn in one snapshot, or one version, that also holds the
positions.

- `settings`: what the two declare
- `staging`: records to columns of the table, and files of them
- `file_names`: names that no two attempts share
- `iceberg`, `delta`: the tables
"""
