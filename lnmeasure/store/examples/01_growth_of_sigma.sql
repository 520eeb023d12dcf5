-- one row per placement and depth: what the last norm divides by, with its 95 % interval
SELECT placement, depth, n_seeds, sigma_mean, sigma_low, sigma_high
FROM by_depth
WHERE setup = 'page' AND init = 'xavier_uniform'
ORDER BY placement, depth
