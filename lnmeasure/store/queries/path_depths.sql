-- one row per depth at which Jacobians from block to block are measured
SELECT DISTINCT depth FROM path_jacobian WHERE setup = $setup AND init = $init ORDER BY depth
