-- one row per compared placement and block at the depth: how alike tokens are, gradients of W_Q and W_K, how many vanish
SELECT placement, block, count(*)::INTEGER AS n_seeds, avg(token_cosine) AS token_cosine, avg(grad_wq) AS grad_wq,
    avg(grad_wk) AS grad_wk, count(*) FILTER (grad_wq IS NULL OR grad_wk IS NULL)::INTEGER AS n_underflow
FROM by_block
WHERE setup = $setup AND init = $init AND depth = $depth AND stack = 'decoder' AND list_contains($compared, placement)
GROUP BY placement, block
ORDER BY placement, block
