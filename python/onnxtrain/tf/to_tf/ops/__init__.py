"""The operators, by theme; table.py says how one is written."""
