-- one row per placement and init, kind says which: its equation, where it comes from, what could not be confirmed
SELECT 'placement' AS kind, name, equation, source, unconfirmed FROM placement_info
UNION ALL SELECT 'init', name, equation, source, unconfirmed FROM init_info
ORDER BY ALL
