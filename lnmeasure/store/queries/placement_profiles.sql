-- one row per compared placement and block at the depth: rms of the stream leaving the block, gradient of its W2
SELECT placement, block, n_seeds, stream_rms_mean, stream_rms_low, stream_rms_high, grad_w2_mean, grad_w2_low,
    grad_w2_high
FROM profile
WHERE setup = $setup AND init = $init AND depth = $depth AND stack = 'decoder'
    AND list_contains($compared, placement)
ORDER BY placement, block
