"""The DuckDB store: what is missing, adding cells, publishing a file whole, asking it. The only part with duckdb."""
