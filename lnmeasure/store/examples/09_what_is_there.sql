-- one row per grid, placement and init: how many cells it asks for, and how many are measured
SELECT grid, placement, init, min(depth) AS shallowest, max(depth) AS deepest, sum(planned) AS planned, sum(ok) AS ok
FROM coverage
GROUP BY grid, placement, init
ORDER BY grid, placement, init
