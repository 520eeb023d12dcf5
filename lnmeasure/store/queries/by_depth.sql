-- one row per placement and depth: every whole-stack mean with its interval
SELECT *
FROM by_depth
WHERE setup = $setup AND init = $init
ORDER BY placement, depth
