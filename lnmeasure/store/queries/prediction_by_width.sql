-- one row per width of the setups that differ from page in nothing else: how far predictions are off, over post and pre
WITH setups AS (
    SELECT name AS setup, width FROM setup_info WHERE name = 'page' OR starts_with(name, 'width_')
), said AS (
    SELECT setup, placement, init, depth, block, quantity, value FROM prediction
    WHERE theory = 'mean_field' AND quantity IN ('stream_rms', 'grad_w2') AND block IS NOT NULL
        AND init = 'xavier_uniform' AND depth IN (8, 16, 32, 64)
), readings AS (
    SELECT setup, placement, init, depth, block, avg(stream_rms) AS stream_rms, avg(grad_w2) AS grad_w2,
        count(*) AS n_seeds
    FROM by_block
    WHERE seed < 3 AND placement IN ('post', 'pre') AND init = 'xavier_uniform' AND stack = 'decoder'
    GROUP BY ALL
)
SELECT width, max(n_seeds)::INTEGER AS n_seeds,
    sqrt(avg((value / stream_rms - 1) ^ 2) FILTER (quantity = 'stream_rms')) AS stream_rms,
    sqrt(avg((value / grad_w2 - 1) ^ 2) FILTER (quantity = 'grad_w2')) AS grad_w2
FROM said JOIN readings USING (setup, placement, init, depth, block) JOIN setups USING (setup)
GROUP BY width
ORDER BY width
