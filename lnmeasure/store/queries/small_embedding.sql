-- one row per init that draws every matrix at one small size or only scales the residual: at the depth, the embedding's
-- rms, what pre's last norm divides by, and pre's top gradient over post's
WITH pre AS (
    SELECT init, mean_of(embedding_rms) AS embedding_rms, mean_of(sigma) AS sigma FROM by_cell
    WHERE setup = $setup AND depth = $depth AND placement = 'pre' AND init IN ('gpt2', 'xavier_residual')
    GROUP BY init
)
SELECT init, embedding_rms, sigma, 1 / estimate AS over_post, 1 / high AS over_post_low, 1 / low AS over_post_high,
    n_seeds
FROM pre JOIN comparison USING (init)
WHERE setup = $setup AND depth = $depth AND placement = 'pre'
ORDER BY init
