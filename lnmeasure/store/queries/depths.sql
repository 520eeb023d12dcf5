-- one row per depth measured in full for post and pre in the setup with the init
SELECT depth
FROM by_cell
WHERE setup = $setup AND init = $init AND placement IN ('post', 'pre') AND "full"
GROUP BY depth
HAVING count(DISTINCT placement) = 2
ORDER BY depth
