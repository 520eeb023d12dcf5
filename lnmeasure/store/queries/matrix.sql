-- one row per placement and init the store knows: at the depth sigma, top gradient over post's, bottom over top gradient
-- Null where there is no such reading: n_seeds is null where the pair is not measured at the depth.
WITH pair AS (
    SELECT placement_info.name AS placement, init_info.name AS init FROM placement_info CROSS JOIN init_info
), bottom AS (
    SELECT placement, init, seed, ln(grad_w2::DOUBLE) AS bottom_log FROM by_block
    WHERE setup = $setup AND depth = $depth AND stack = 'decoder' AND block = 1 AND grad_w2 > 0
), ratio AS (
    SELECT placement, init, count(*)::INTEGER AS n_bottom, mean_of(bottom_log - ln(top_grad_w2::DOUBLE)) AS mean,
        sem_of(bottom_log - ln(top_grad_w2::DOUBLE)) AS sem
    FROM bottom JOIN by_cell USING (placement, init, seed)
    WHERE setup = $setup AND depth = $depth AND top_grad_w2 > 0
    GROUP BY placement, init
), whole AS (
    SELECT placement, init, count(*)::INTEGER AS n_seeds, count(*) FILTER (top_grad_w2 = 0)::INTEGER AS n_zero,
        count(*) FILTER (status <> 'ok')::INTEGER AS n_beyond, mean_of(sigma) AS sigma, sem_of(sigma) AS sigma_sem,
        mean_of(top_grad_w2) AS top_gradient
    FROM by_cell
    WHERE setup = $setup AND depth = $depth
    GROUP BY placement, init
), over_post AS (
    SELECT placement, init, 1 / estimate AS estimate, 1 / high AS low, 1 / low AS high FROM comparison
    WHERE setup = $setup AND depth = $depth
)
SELECT placement, init, n_seeds, n_zero, n_beyond, sigma, sigma - ts.t * sigma_sem AS sigma_low,
    sigma + ts.t * sigma_sem AS sigma_high, top_gradient,
    CASE WHEN placement = 'post' AND top_gradient > 0 THEN 1 ELSE over_post.estimate END AS over_post,
    over_post.low AS over_post_low, over_post.high AS over_post_high, exp(mean) AS bottom_over_top,
    exp(mean - tb.t * sem) AS bottom_over_top_low, exp(mean + tb.t * sem) AS bottom_over_top_high
FROM pair LEFT JOIN whole USING (placement, init) LEFT JOIN over_post USING (placement, init)
    LEFT JOIN ratio USING (placement, init) LEFT JOIN t_quantile ts ON ts.n = n_seeds
    LEFT JOIN t_quantile tb ON tb.n = n_bottom
ORDER BY placement, init
