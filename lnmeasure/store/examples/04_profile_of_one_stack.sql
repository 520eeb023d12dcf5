-- one row per block of pre-LN with 24 blocks: the stream going up and W2's gradient coming down
SELECT block, stream_rms_mean, grad_w2_mean, grad_w2_low, grad_w2_high
FROM profile
WHERE setup = 'page' AND placement = 'pre' AND init = 'xavier_uniform' AND depth = 24 AND stack = 'decoder'
ORDER BY block
