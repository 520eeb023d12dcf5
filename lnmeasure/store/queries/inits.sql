-- one row per init measured for post and pre in the setup
SELECT init, equation, source
FROM by_cell JOIN init_info ON init_info.name = init
WHERE setup = $setup AND placement IN ('post', 'pre')
GROUP BY init, equation, source
HAVING count(DISTINCT placement) = 2
ORDER BY init <> 'xavier_uniform', init <> 'xavier_residual', init
