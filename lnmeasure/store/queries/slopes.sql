-- one row per placement (post or pre), quantity and range of depths: the fitted log-log slope
SELECT placement, quantity, depth_min, depth_max, n_depths, n_seeds, estimate, low, high
FROM slope
WHERE setup = $setup AND init = $init AND placement IN ('post', 'pre')
ORDER BY placement, quantity, depth_min DESC, depth_max DESC
