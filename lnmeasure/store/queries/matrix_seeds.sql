-- one row: fewest and most seeds of any placement and init measured at the depth, how many of them, and by which code
WITH cells AS (
    SELECT placement, init, measured_at, refresh FROM by_cell WHERE setup = $setup AND depth = $depth
), pairs AS (
    SELECT placement, init, count(*) AS n_seeds FROM cells GROUP BY placement, init
)
SELECT coalesce(min(n_seeds), 0)::INTEGER AS fewest_seeds, coalesce(max(n_seeds), 0)::INTEGER AS n_seeds,
    count(*)::INTEGER AS n_pairs, count(DISTINCT placement)::INTEGER AS n_placements,
    count(DISTINCT init)::INTEGER AS n_inits,
    (SELECT arg_max(commit, measured_at) FROM cells JOIN refresh_log USING (refresh)) AS commit
FROM pairs
