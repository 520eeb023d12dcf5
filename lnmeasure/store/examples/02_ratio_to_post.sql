-- one row per init and depth: how many times larger post-LN's top gradient is than pre-LN's
SELECT init, depth, estimate, low, high
FROM comparison
WHERE setup = 'page' AND placement = 'pre'
ORDER BY init, depth
