-- one row per placement and block at the depth: every per-block mean with its interval
SELECT *
FROM profile
WHERE setup = $setup AND init = $init AND depth = $depth
ORDER BY placement, stack, block
