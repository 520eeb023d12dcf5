-- one row per grid, setup, placement, init and depth whose cells failed: how many, and why
SELECT grid, setup, placement, init, depth, failed, reason
FROM coverage
WHERE failed > 0
ORDER BY grid, setup, placement, init, depth
