-- one row per placement: how far predicted sigma and top gradient are from the means over seeds, over inits and depths
WITH said AS (
    SELECT placement, init, depth, max(value) FILTER (quantity = 'sigma') AS sigma,
        max(value) FILTER (quantity = 'top_grad_w2') AS top
    FROM prediction
    WHERE setup = $setup AND theory = 'mean_field' AND block IS NULL
    GROUP BY placement, init, depth
), off AS (
    SELECT placement, abs(sigma / sigma_mean - 1) AS sigma,
        CASE WHEN top_grad_w2_mean > 0 THEN abs(top / top_grad_w2_mean - 1) END AS top
    FROM by_depth JOIN said USING (placement, init, depth)
    WHERE setup = $setup
)
SELECT placement, count(*)::INTEGER AS n_settings, median(sigma) AS sigma_median, max(sigma) AS sigma_worst,
    median(top) AS top_median, max(top) AS top_worst
FROM off
GROUP BY placement
ORDER BY placement
