-- one row per depth of post and of pre: every whole-stack mean with its interval
SELECT *
FROM by_depth
WHERE setup = $setup AND init = $init AND placement IN ('post', 'pre')
ORDER BY placement, depth
