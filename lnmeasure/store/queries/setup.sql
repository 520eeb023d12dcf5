-- one row: every constant of the setup
SELECT *
FROM setup_info
WHERE name = $setup
