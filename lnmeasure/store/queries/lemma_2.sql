-- one row per block at the depth: mean square of the stream, post and pre with intervals, and Lemma 2's bounds on pre
SELECT block, max(n_seeds) AS n_seeds,
    max(stream_rms_mean ^ 2) FILTER (placement = 'post') AS post,
    max(stream_rms_low ^ 2) FILTER (placement = 'post') AS post_low,
    max(stream_rms_high ^ 2) FILTER (placement = 'post') AS post_high,
    max(stream_rms_mean ^ 2) FILTER (placement = 'pre') AS pre,
    max(stream_rms_low ^ 2) FILTER (placement = 'pre') AS pre_low,
    max(stream_rms_high ^ 2) FILTER (placement = 'pre') AS pre_high,
    1 + block / 2 AS pre_least, 1 + 3 * block / 2 AS pre_most
FROM profile
WHERE setup = $setup AND init = $init AND depth = $depth AND stack = 'decoder'
GROUP BY block
ORDER BY block
