-- one row per init at the depth: pre's stream at the first and last block, sigma, top gradients, post's over pre's
WITH whole AS (
    SELECT placement, init, count(*)::INTEGER AS n_seeds, mean_of(sigma) AS sigma, mean_of(top_grad_w2) AS gradient
    FROM by_cell
    WHERE setup = $setup AND depth = $depth AND placement IN ('post', 'pre')
        AND init IN ('xavier_uniform', 'xavier_residual', 'gpt2')
    GROUP BY placement, init
), stream AS (
    SELECT init, block, stream_rms_mean AS mean, stream_rms_low AS low, stream_rms_high AS high
    FROM profile
    WHERE setup = $setup AND depth = $depth AND placement = 'pre' AND stack = 'decoder' AND block IN (1, $depth)
), ratio AS (
    SELECT init, estimate, low, high FROM comparison
    WHERE setup = $setup AND depth = $depth AND placement = 'pre'
)
SELECT init, first.mean AS first_stream, last.mean AS last_stream, last.low AS last_stream_low,
    last.high AS last_stream_high, pre.sigma AS pre_sigma, pre.gradient AS pre_gradient,
    post.gradient AS post_gradient, ratio.estimate AS ratio, ratio.low AS ratio_low, ratio.high AS ratio_high,
    pre.n_seeds
FROM whole pre JOIN whole post USING (init) JOIN ratio USING (init) JOIN stream first USING (init)
    JOIN stream last USING (init)
WHERE pre.placement = 'pre' AND post.placement = 'post' AND first.block = 1 AND last.block = $depth
ORDER BY init <> 'xavier_uniform', init <> 'xavier_residual'
