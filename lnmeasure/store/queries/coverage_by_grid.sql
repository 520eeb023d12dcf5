-- one row per grid: what became of the cells it asks for
SELECT grid, sum(planned)::INTEGER AS planned, sum(ok)::INTEGER AS ok, sum(skipped)::INTEGER AS skipped,
    sum(failed)::INTEGER AS failed, sum(missing)::INTEGER AS missing
FROM coverage
GROUP BY grid
ORDER BY grid
