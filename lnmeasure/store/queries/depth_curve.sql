-- one row per placement and depth: gradient of the last W2, its prediction, and for pre the 1/sqrt(L) guide
WITH depths AS (
    SELECT placement, depth, n_seeds, top_grad_w2_mean AS mean, top_grad_w2_low AS low, top_grad_w2_high AS high
    FROM by_depth
    WHERE setup = $setup AND init = $init AND placement IN ('post', 'pre')
), anchor AS (
    SELECT max(depth) AS depth, arg_max(mean, depth) AS mean FROM depths WHERE placement = 'pre'
)
SELECT depths.placement, depths.depth, n_seeds, depths.mean, low, high,
    CASE WHEN depths.placement = 'pre' THEN anchor.mean * sqrt(anchor.depth / depths.depth) END AS guide, predicted
FROM depths CROSS JOIN anchor LEFT JOIN (
    SELECT placement, depth, value AS predicted FROM prediction
    WHERE setup = $setup AND init = $init AND quantity = 'top_grad_w2' AND theory = 'mean_field'
) said ON said.placement = depths.placement AND said.depth = depths.depth
ORDER BY depths.placement, depths.depth
