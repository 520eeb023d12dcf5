-- one row: seeds and probes of the Jacobians, and by which code they were measured
SELECT coalesce(min(n_seeds), 0)::INTEGER AS fewest_seeds, coalesce(max(n_seeds), 0)::INTEGER AS n_seeds,
    coalesce(max(n_probes), 0)::INTEGER AS n_probes, (SELECT arg_max(commit, refresh) FROM refresh_log) AS commit
FROM path_jacobian
WHERE setup = $setup
