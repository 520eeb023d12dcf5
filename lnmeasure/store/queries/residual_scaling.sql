-- one row per init at the depth: pre's stream at the first and last block, sigma, top gradients, post's over pre's
SELECT d.init, first.stream_rms_mean AS first_stream, last.stream_rms_mean AS last_stream,
    last.stream_rms_low AS last_stream_low, last.stream_rms_high AS last_stream_high, d.sigma_mean AS pre_sigma,
    d.top_grad_w2_mean AS pre_gradient, post.top_grad_w2_mean AS post_gradient,
    c.estimate AS ratio, c.low AS ratio_low, c.high AS ratio_high, d.n_seeds
FROM by_depth d
JOIN by_depth post USING (setup, init, depth)
JOIN comparison c ON (c.setup, c.placement, c.init, c.depth) = (d.setup, d.placement, d.init, d.depth)
JOIN profile first ON (first.setup, first.placement, first.init, first.depth) = (d.setup, d.placement, d.init, d.depth)
JOIN profile last ON (last.setup, last.placement, last.init, last.depth) = (d.setup, d.placement, d.init, d.depth)
WHERE d.setup = $setup AND d.depth = $depth AND d.placement = 'pre' AND post.placement = 'post'
    AND d.init IN ('xavier_uniform', 'xavier_residual', 'gpt2')
    AND first.stack = 'decoder' AND first.block = 1 AND last.stack = 'decoder' AND last.block = $depth
ORDER BY d.init <> 'xavier_uniform', d.init <> 'xavier_residual'
