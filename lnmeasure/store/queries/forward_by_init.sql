-- one row per init and block at the depth: rms of pre's stream leaving the block
SELECT init, block, n_seeds, stream_rms_mean AS mean, stream_rms_low AS low, stream_rms_high AS high
FROM profile
WHERE setup = $setup AND placement = 'pre' AND depth = $depth AND stack = 'decoder'
    AND init IN ('xavier_uniform', 'xavier_residual', 'gpt2')
ORDER BY init, block
