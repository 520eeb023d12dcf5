-- one row per block of a single measured cell, seed 3: nothing averaged
SELECT block, stream_rms, branch_rms_attention, branch_rms_ffn, grad_stream, token_cosine
FROM by_block
WHERE setup = 'page' AND placement = 'post' AND init = 'gpt2' AND depth = 12 AND seed = 3
ORDER BY block
