-- one row per placement: its update and where it comes from
SELECT name AS placement, equation, source, unconfirmed
FROM placement_info
ORDER BY name
