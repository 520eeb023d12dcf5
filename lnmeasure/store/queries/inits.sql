-- one row per init with a depth at which the setup is measured in full for post and pre
WITH common AS (
    SELECT init, depth FROM by_cell
    WHERE setup = $setup AND placement IN ('post', 'pre') AND "full"
    GROUP BY init, depth
    HAVING count(DISTINCT placement) = 2
)
SELECT DISTINCT init, equation, source
FROM common JOIN init_info ON init_info.name = init
ORDER BY init <> 'xavier_uniform', init <> 'xavier_residual', init <> 'gpt2', init
