-- one row: fewest and most seeds of any placement and init measured at the depth, and how many of them there are
SELECT coalesce(min(n_seeds), 0)::INTEGER AS fewest_seeds, coalesce(max(n_seeds), 0)::INTEGER AS n_seeds,
    count(*)::INTEGER AS n_pairs, count(DISTINCT placement)::INTEGER AS n_placements,
    count(DISTINCT init)::INTEGER AS n_inits
FROM (
    SELECT placement, init, count(*) AS n_seeds FROM by_cell
    WHERE setup = $setup AND depth = $depth
    GROUP BY placement, init
)
