-- one row: how many seeds post and pre were measured with in the setup, most and least of any point, and by which code
SELECT count(DISTINCT seed)::INTEGER AS n_seeds,
    coalesce((SELECT min(n_seeds) FROM by_depth WHERE setup = $setup AND placement IN ('post', 'pre')), 0)::INTEGER
        AS fewest_seeds, count(*)::INTEGER AS n_cells,
    max(measured_at) AS last_measured, arg_max(refresh_log.commit, measured_at) AS commit,
    arg_max(refresh_log.torch, measured_at) AS torch
FROM by_cell JOIN refresh_log USING (refresh)
WHERE setup = $setup AND placement IN ('post', 'pre')
