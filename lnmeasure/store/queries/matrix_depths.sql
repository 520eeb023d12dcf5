-- one row per depth at which every block is measured for more placements than two, or, where there is none, for any
SELECT depth, count(DISTINCT placement)::INTEGER AS n_placements
FROM by_cell
WHERE setup = $setup AND "full"
GROUP BY depth
QUALIFY n_placements > 2 OR max(n_placements) OVER () <= 2
ORDER BY depth
