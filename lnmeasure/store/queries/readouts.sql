-- one row per placement at the depth: sigma, top gradient, post's over this placement's, and what is predicted
SELECT d.placement, d.n_seeds, sigma_mean, sigma_low, sigma_high, top_grad_w2_mean, top_grad_w2_low, top_grad_w2_high,
    c.estimate AS ratio, c.low AS ratio_low, c.high AS ratio_high, said.sigma AS sigma_predicted,
    said.top_grad_w2 AS top_grad_w2_predicted
FROM by_depth d LEFT JOIN comparison c USING (setup, placement, init, depth) LEFT JOIN (
    SELECT placement, max(value) FILTER (quantity = 'sigma') AS sigma,
        max(value) FILTER (quantity = 'top_grad_w2') AS top_grad_w2
    FROM prediction
    WHERE setup = $setup AND init = $init AND depth = $depth AND theory = 'mean_field'
    GROUP BY placement
) said ON said.placement = d.placement
WHERE setup = $setup AND init = $init AND depth = $depth AND d.placement IN ('post', 'pre')
ORDER BY d.placement
