-- one row per placement, init and range of the catalogue's depths: fitted log-log slope of the top gradient
SELECT placement, init, depth_min, depth_max, n_depths, n_seeds, estimate, low, high
FROM slope
WHERE setup = $setup AND quantity = 'top_grad_w2' AND depth_min = 2
ORDER BY placement, init, depth_max DESC
