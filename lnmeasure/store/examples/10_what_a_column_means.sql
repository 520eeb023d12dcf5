-- one row per column of a view: its definition and unit, kept in the file itself
SELECT column_name, data_type, comment
FROM duckdb_columns()
WHERE table_name = 'by_block'
ORDER BY column_index
