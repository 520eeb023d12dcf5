-- one row per placement and block at the depth: gradient of W2, its prediction, and for pre a constant over its stream
WITH blocks AS (
    SELECT placement, block, n_seeds, grad_w2_mean, grad_w2_low, grad_w2_high, stream_rms_mean
    FROM profile
    WHERE setup = $setup AND init = $init AND depth = $depth AND placement IN ('post', 'pre') AND stack = 'decoder'
), constant AS (
    SELECT exp(avg(ln(grad_w2_mean * stream_rms_mean))) AS product FROM blocks WHERE placement = 'pre'
)
SELECT placement, block, n_seeds, grad_w2_mean AS mean, grad_w2_low AS low, grad_w2_high AS high,
    CASE WHEN placement = 'pre' THEN product / stream_rms_mean END AS over_stream, predicted
FROM blocks CROSS JOIN constant LEFT JOIN (
    SELECT placement, block, value AS predicted FROM prediction
    WHERE setup = $setup AND init = $init AND depth = $depth AND quantity = 'grad_w2' AND theory = 'mean_field'
) USING (placement, block)
ORDER BY placement, block
