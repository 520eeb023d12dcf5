-- one row per placement and depth: gradient of the last W2, and for pre the 1/sqrt(L) guide through its deepest point
WITH depths AS (
    SELECT placement, depth, n_seeds, top_grad_w2_mean AS mean, top_grad_w2_low AS low, top_grad_w2_high AS high
    FROM by_depth
    WHERE setup = $setup AND init = $init AND placement IN ('post', 'pre')
), anchor AS (
    SELECT max(depth) AS depth, arg_max(mean, depth) AS mean FROM depths WHERE placement = 'pre'
)
SELECT placement, depths.depth, n_seeds, depths.mean, low, high,
    CASE WHEN placement = 'pre' THEN anchor.mean * sqrt(anchor.depth / depths.depth) END AS guide
FROM depths CROSS JOIN anchor
ORDER BY placement, depths.depth
