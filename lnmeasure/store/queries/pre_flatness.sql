-- one row: pre's gradient of W2 in the first block and in the middle block over that in the last, geometric means
WITH gradient AS (
    SELECT seed, block, ln(grad_w2::DOUBLE) AS log FROM by_block
    WHERE setup = $setup AND init = $init AND depth = $depth AND placement = 'pre' AND stack = 'decoder' AND grad_w2 > 0
), ratios AS (
    SELECT bottom.seed, bottom.log - top.log AS bottom_log, middle.log - top.log AS middle_log
    FROM gradient bottom JOIN gradient middle USING (seed) JOIN gradient top USING (seed)
    WHERE bottom.block = 1 AND middle.block = ($depth + 1) // 2 AND top.block = $depth
), moments AS (
    SELECT count(*)::INTEGER AS n_seeds, mean_of(bottom_log) AS bottom, sem_of(bottom_log) AS bottom_sem,
        mean_of(middle_log) AS middle, sem_of(middle_log) AS middle_sem
    FROM ratios
)
SELECT ($depth + 1) // 2 AS middle_block, n_seeds,
    exp(bottom) AS bottom, exp(bottom - t * bottom_sem) AS bottom_low, exp(bottom + t * bottom_sem) AS bottom_high,
    exp(middle) AS middle, exp(middle - t * middle_sem) AS middle_low, exp(middle + t * middle_sem) AS middle_high
FROM moments LEFT JOIN t_quantile ON n = n_seeds
