-- one row per placement (post, pre), depth and block: gradient of the stream, and times the stream's rms
SELECT placement, depth, block, n_seeds, grad_stream_mean AS mean, grad_stream_low AS low, grad_stream_high AS high,
    grad_stream_mean * stream_rms_mean AS product
FROM profile
WHERE setup = $setup AND init = $init AND stack = 'decoder' AND placement IN ('post', 'pre')
    AND depth IN (6, 12, 24, 48)
ORDER BY placement, depth, block
