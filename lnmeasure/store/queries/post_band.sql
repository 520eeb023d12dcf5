-- one row: between which values post's mean gradient of W2 stays, over every block of every depth
SELECT min(grad_w2_mean) AS lowest, max(grad_w2_mean) AS highest, count(DISTINCT depth)::INTEGER AS n_depths
FROM profile
WHERE setup = $setup AND init = $init AND placement = 'post' AND stack = 'decoder'
