"""The object-store sink and source: files in S3, GCS, Azure or a local directory.

- `settings`: what both declare
- `stores`: which store the settings name
- `joda`, `partitioners`: the folders of files
- `cuts`: which records are one file
- `formats`, `arrow_rows`: Parquet, Avro, JSON lines, bytes
- `sink`, `source`
"""
