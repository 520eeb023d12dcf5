-- one row per placement and init: how alike the tokens of a sequence are after the last of 64 blocks
SELECT placement, init, token_cosine_mean, token_cosine_low, token_cosine_high
FROM profile
WHERE setup = 'page' AND depth = 64 AND block = 64 AND stack = 'decoder'
ORDER BY placement, init
