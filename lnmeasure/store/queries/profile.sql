-- one row per block of post and of pre at the depth: every per-block mean with its interval
SELECT *
FROM profile
WHERE setup = $setup AND init = $init AND depth = $depth AND placement IN ('post', 'pre')
ORDER BY placement, stack, block
