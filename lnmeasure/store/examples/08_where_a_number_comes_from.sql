-- one row per cell behind one point of the page: its seed, reading, date, commit and torch
SELECT seed, top_grad_w2, measured_at, refresh_log.commit, refresh_log.torch
FROM by_cell JOIN refresh_log USING (refresh)
WHERE setup = 'page' AND placement = 'pre' AND init = 'xavier_uniform' AND depth = 24
ORDER BY seed
