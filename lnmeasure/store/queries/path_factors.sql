-- one row per placement and depth: the Jacobian of the whole stack, and the factor per block that its size comes to
SELECT placement, depth, n_seeds, size, size_se, size ^ (1.0 / depth) AS factor, trace, trace_se, identity_share
FROM path_jacobian
WHERE setup = $setup AND init = $init AND from_block = 0 AND to_block = depth
ORDER BY placement, depth
