-- one row per compared placement and block at the depth: stream rms, gradient of W2, and the prediction of each
SELECT placement, block, n_seeds, stream_rms_mean, stream_rms_low, stream_rms_high, stream_rms_predicted,
    grad_w2_mean, grad_w2_low, grad_w2_high, grad_w2_predicted
FROM profile LEFT JOIN (
    SELECT placement, block, max(value) FILTER (quantity = 'stream_rms') AS stream_rms_predicted,
        max(value) FILTER (quantity = 'grad_w2') AS grad_w2_predicted
    FROM prediction
    WHERE setup = $setup AND init = $init AND depth = $depth AND theory = 'mean_field' AND block IS NOT NULL
    GROUP BY placement, block
) USING (placement, block)
WHERE setup = $setup AND init = $init AND depth = $depth AND stack = 'decoder'
    AND list_contains($compared, placement)
ORDER BY placement, block
