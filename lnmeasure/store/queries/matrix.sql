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
), status AS (
    SELECT placement, init, count(*) FILTER (top_grad_w2 = 0)::INTEGER AS n_zero,
        count(*) FILTER (status <> 'ok')::INTEGER AS n_beyond
    FROM by_cell
    WHERE setup = $setup AND depth = $depth
    GROUP BY placement, init
), whole AS (
    SELECT placement, init, n_seeds, sigma_mean, sigma_low, sigma_high, top_grad_w2_mean
    FROM by_depth
    WHERE setup = $setup AND depth = $depth
), over_post AS (
    SELECT placement, init, 1 / estimate AS estimate, 1 / high AS low, 1 / low AS high FROM comparison
    WHERE setup = $setup AND depth = $depth
)
SELECT placement, init, n_seeds, n_zero, n_beyond, sigma_mean AS sigma, sigma_low, sigma_high,
    top_grad_w2_mean AS top_gradient,
    CASE WHEN placement = 'post' AND top_grad_w2_mean > 0 THEN 1 ELSE over_post.estimate END AS over_post,
    over_post.low AS over_post_low, over_post.high AS over_post_high, exp(mean) AS bottom_over_top,
    exp(mean - t * sem) AS bottom_over_top_low, exp(mean + t * sem) AS bottom_over_top_high
FROM pair LEFT JOIN whole USING (placement, init) LEFT JOIN status USING (placement, init)
    LEFT JOIN over_post USING (placement, init) LEFT JOIN ratio USING (placement, init)
    LEFT JOIN t_quantile ON n = n_bottom
ORDER BY placement, init
