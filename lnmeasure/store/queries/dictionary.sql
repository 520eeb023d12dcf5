-- one row per column of a contract view: its type and comment, and the view's own comment
WITH described AS (
    SELECT view_name AS view, comment AS view_comment FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT table_name, comment FROM duckdb_tables() WHERE table_name = 'meta'
)
SELECT view, view_comment, column_name AS "column", data_type AS type, columns.comment AS comment
FROM described JOIN duckdb_columns() columns ON table_name = view
ORDER BY view, column_index
