-- one row per placement at the depth: sigma, top gradient, and post's top gradient over this placement's
SELECT d.placement, d.n_seeds, sigma_mean, sigma_low, sigma_high, top_grad_w2_mean, top_grad_w2_low, top_grad_w2_high,
    c.estimate AS ratio, c.low AS ratio_low, c.high AS ratio_high
FROM by_depth d LEFT JOIN comparison c USING (setup, placement, init, depth)
WHERE setup = $setup AND init = $init AND depth = $depth AND d.placement IN ('post', 'pre')
ORDER BY d.placement
