-- one row per placement and block at the depth: rms of the un-normalised stream leaving the block, and the prediction
SELECT placement, block, n_seeds, stream_rms_mean AS mean, stream_rms_low AS low, stream_rms_high AS high, predicted
FROM profile LEFT JOIN (
    SELECT placement, block, value AS predicted FROM prediction
    WHERE setup = $setup AND init = $init AND depth = $depth AND quantity = 'stream_rms' AND theory = 'mean_field'
) USING (placement, block)
WHERE setup = $setup AND init = $init AND depth = $depth AND placement IN ('post', 'pre') AND stack = 'decoder'
ORDER BY placement, block
