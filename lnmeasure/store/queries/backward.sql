-- one row per placement and block at the depth: gradient of W2, and for pre one constant over its stream rms
WITH blocks AS (
    SELECT placement, block, n_seeds, grad_w2_mean, grad_w2_low, grad_w2_high, stream_rms_mean
    FROM profile
    WHERE setup = $setup AND init = $init AND depth = $depth AND placement IN ('post', 'pre') AND stack = 'decoder'
), constant AS (
    SELECT exp(avg(ln(grad_w2_mean * stream_rms_mean))) AS product FROM blocks WHERE placement = 'pre'
)
SELECT placement, block, n_seeds, grad_w2_mean AS mean, grad_w2_low AS low, grad_w2_high AS high,
    CASE WHEN placement = 'pre' THEN product / stream_rms_mean END AS over_stream
FROM blocks CROSS JOIN constant
ORDER BY placement, block
