-- one row per placement and quantity: predictions per block that miss the goal (3 % for the stream, 10 % for gradients),
-- how many of them lie outside the measured interval too, and where the farthest of those is
WITH said AS (
    SELECT placement, init, depth, block, quantity, value FROM prediction
    WHERE setup = $setup AND theory = 'mean_field' AND block IS NOT NULL AND depth <= 64
        AND quantity IN ('stream_rms', 'grad_w2', 'grad_w1')
), measured AS (
    SELECT placement, init, depth, block, quantity, mean, low, high
    FROM profile, LATERAL (VALUES
        ('stream_rms', stream_rms_mean, stream_rms_low, stream_rms_high),
        ('grad_w2', grad_w2_mean, grad_w2_low, grad_w2_high),
        ('grad_w1', grad_w1_mean, grad_w1_low, grad_w1_high)) AS one(quantity, mean, low, high)
    WHERE setup = $setup AND stack = 'decoder' AND mean > 0
), off AS (
    SELECT placement, quantity, init, depth, block, value / mean - 1 AS off, value NOT BETWEEN low AND high AS outside,
        abs(value / mean - 1) > CASE WHEN quantity = 'stream_rms' THEN 0.03 ELSE 0.1 END AS misses
    FROM said JOIN measured USING (placement, init, depth, block, quantity)
)
SELECT placement, quantity, count(*)::INTEGER AS n_values, count(*) FILTER (misses)::INTEGER AS n_misses,
    count(*) FILTER (misses AND outside)::INTEGER AS n_outside,
    arg_max(init, abs(off)) FILTER (misses AND outside) AS init,
    arg_max(depth, abs(off)) FILTER (misses AND outside) AS depth,
    arg_max(block, abs(off)) FILTER (misses AND outside) AS block,
    arg_max(off, abs(off)) FILTER (misses AND outside) AS off
FROM off
GROUP BY placement, quantity
ORDER BY n_outside DESC, placement, quantity
