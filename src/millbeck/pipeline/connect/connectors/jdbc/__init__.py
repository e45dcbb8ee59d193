"""The JDBC sink and source: tables of PostgreSQL and MariaDB by Python drivers.

- `settings`: what both connectors declare
- `urls`: ``jdbc:`` URLs
- `dialect`, `postgresql`, `mariadb`: what differs between databases
- `rows`, `tables`, `sink`, `positions`: records to rows, creating and extending tables, writing, exactly once
- `columns`, `source`, `ranges`: rows to records, and which rows are new
"""
