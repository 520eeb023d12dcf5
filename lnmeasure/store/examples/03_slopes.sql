-- one row per placement, init and quantity: the exponent of depth, fitted over depths 8 to 64
SELECT placement, init, quantity, n_seeds, estimate, low, high
FROM slope
WHERE setup = 'page' AND depth_min = 8 AND depth_max = 64
ORDER BY placement, init, quantity
