-- one row per placement: the highest mean token cosine of any init, depth and block up to 64 blocks
SELECT placement, max(token_cosine_mean) AS token_cosine
FROM profile
WHERE setup = $setup AND depth <= 64 AND stack = 'decoder'
GROUP BY placement
ORDER BY placement
