-- one row per placement and depth: rms of one entry of W2's gradient at the top, instead of the norm of all
SELECT placement, depth, top_grad_w2_mean / sqrt(numel_w2) AS rms_per_entry
FROM by_depth JOIN setup_info ON setup_info.name = by_depth.setup
WHERE setup = 'page' AND init = 'xavier_uniform'
ORDER BY placement, depth
