-- Fills the empty tables of schema.sql with invented readings, at least getvariable('rows') of them in block_reading.
-- A family is a setup, placement and init: eleven depths of ten seeds, 2,170 rows. Families come setup by setup, post
-- and pre first, so that a small store holds what the page shows. DuckDB's min and max of a string see eight letters:
-- the names are the real ones, four of which begin alike, for what a filter skips depends on them.

CREATE TEMP MACRO uniform(a, b) AS hash(a, b) / 18446744073709551616.0;
CREATE TEMP MACRO drawn(size, a, b) AS (size * exp(0.2 * (uniform(a, b) + uniform(b, a) - 1)))::FLOAT;

CREATE TEMP TABLE family AS
WITH wanted AS (
    SELECT ceil(getvariable('rows') / 2170)::BIGINT AS n
), setups AS (
    SELECT unnest(['page', 'page_rmsnorm', 'page_emb_004', 'page_emb_002', 'page_zipf', 'xiong_theory', 'xiong_fig3',
        'xiong_fig3_rho_000', 'xiong_fig3_rho_050', 'xiong_fig3_rho_100', 'page_d64', 'page_d128', 'page_d512',
        'page_d1024', 'page_gelu', 'page_bidirectional', 'page_uniform', 'page_r1', 'page_no_wo', 'page_tied',
        'page_float64']) AS setup, generate_subscripts(range(21), 1) AS setup_rank
    UNION ALL SELECT format('setup_{:05}', number), number
    FROM (SELECT unnest(range(22, 2 + n // 228)) AS number FROM wanted)
), placements AS (
    SELECT unnest(['post', 'pre', 'none', 'sandwich', 'reordered', 'reordered_no_qk', 'deepnorm', 'keel', 'admin',
        'normformer', 'layernorm_scaling', 'mix_ln', 'hybridnorm', 'b2t', 'residual', 'rezero', 'layerscale',
        'depth_mup', 'completep']) AS placement, generate_subscripts(range(19), 1) AS placement_rank
), inits AS (
    SELECT unnest(['xavier_uniform', 'xavier_residual', 'gpt2', 'xavier_normal', 'normal_002', 'he', 'lecun',
        'torch_linear', 'small_wang', 'ds_init', 'orthogonal', 'theory']) AS init,
        generate_subscripts(range(12), 1) AS init_rank
)
SELECT setup, placement, init,
    row_number() OVER (ORDER BY setup_rank, placement_rank > 2 OR init_rank > 3, placement_rank, init_rank) AS place
FROM setups CROSS JOIN placements CROSS JOIN inits
QUALIFY place <= (SELECT n FROM wanted);

-- An eleventh seed is planned for a few families, and came to nothing: each way a cell can be without blocks.
CREATE TEMP TABLE wish AS
SELECT md5(concat_ws(' ', setup, placement, init, depth, seed)) AS key, setup, placement, init, depth, seed,
    hash(setup, placement, init, depth, seed) AS number,
    CASE WHEN seed = 10 THEN ['failed', 'skipped', 'missing', 'whole'][(1 + number % 4)::INTEGER] ELSE 'full' END
        AS state,
    depth ** ((hash(placement) % 5) / -5.0) AS size, number % 2000 = 0 AS overflows
FROM family CROSS JOIN (SELECT unnest([1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]) AS depth)
    CROSS JOIN (SELECT unnest(range(11)) AS seed)
WHERE seed < 10 OR place % 20 = 9;

INSERT INTO setup (name, width, heads, ffn_ratio, activation, attention, output_projection, norm, eps, seq_len, batch,
    vocab, embedding_std, input, data, tied_head, dtype, encoder, encoder_cosine)
SELECT DISTINCT setup, 256, 4, 4, 'relu', 'causal', true, 'layernorm', 1e-5, 32, 32, 1000, 1.0, 'tokens', 'uniform',
    false, 'float32', 'none', 0.0
FROM (SELECT setup FROM family UNION SELECT 'paths') ORDER BY setup;

INSERT INTO registered (kind, name, equation, source)
SELECT DISTINCT 'placement', placement, 'x <- x', 'invented' FROM family
UNION SELECT 'init', init, 'var 1', 'invented' FROM family ORDER BY ALL;

INSERT INTO refresh (refresh, started, finished, planned, measured, reused, failed, package, torch, python, processor,
    threads, wall_s)
SELECT 1, TIMESTAMP '2026-01-01', TIMESTAMP '2026-01-02', count(*), count(*) FILTER (state IN ('full', 'whole')), 0,
    count(*) FILTER (state = 'failed'), '0', '0', '3', 'invented', 1, 86400.0
FROM wish;

INSERT INTO planned (grid, key, setup, placement, init, depth, seed, skipped, "full")
SELECT setup, key, setup, placement, init, depth, seed, CASE WHEN state = 'skipped' THEN 'invented: left out' END,
    true
FROM wish ORDER BY setup, placement, init, depth, seed;

INSERT INTO failure (key, setup, placement, init, depth, seed, attempts, reason, failed_at, refresh)
SELECT key, setup, placement, init, depth, seed, 2, 'invented: an error', TIMESTAMP '2026-01-01', 1
FROM wish WHERE state = 'failed' ORDER BY setup, placement, init, depth, seed;

INSERT INTO cell (key, setup, placement, init, depth, seed, sigma, sigma_dual, top_grad_w2, loss, embedding_rms, status,
    measured_at, measurement_version, wall_s, refresh, "full", peak_mb, kind)
SELECT key, setup, placement, init, depth, seed, CASE WHEN NOT overflows THEN drawn(1 / size, number, 1) END,
    CASE WHEN placement = 'residual' THEN drawn(1, number, 2) END,
    CASE WHEN NOT overflows THEN drawn(0.3 * size, number, 3) END, drawn(7, number, 4), drawn(1, number, 5),
    CASE WHEN overflows THEN 'overflow' ELSE 'ok' END, TIMESTAMP '2026-01-01' + to_seconds(number % 86400), 1,
    drawn(depth, number, 6), 1, state = 'full', drawn(500, number, 7), 'readings'
FROM wish WHERE state IN ('full', 'whole') ORDER BY setup, placement, init, depth, seed;

INSERT INTO block_reading (setup, placement, init, depth, seed, stack, block, stream_rms, branch_rms_attention,
    branch_rms_ffn, grad_w1, grad_w2, grad_wq, grad_wk, grad_wv, grad_wo, grad_stream, grad_presum, token_cosine,
    cross_sequence_cosine, attention_logit_std, attention_participation)
WITH block AS (
    SELECT *, unnest(range(1, depth + 1)) AS block FROM wish WHERE state = 'full'
), numbered AS (
    SELECT * REPLACE (hash(number, stack, block) AS number) FROM block JOIN (VALUES ('decoder'), ('encoder')) t(stack)
        ON stack = 'decoder' OR setup = 'xiong_fig3'
)
SELECT setup, placement, init, depth, seed, stack, block, drawn(1 / size, number, 1), drawn(0.5, number, 2),
    drawn(0.6, number, 3), drawn(0.2 * size, number, 4),
    CASE WHEN NOT overflows THEN drawn(0.3 * size, number, 5) END,
    drawn(0.02 * size, number, 6), drawn(0.02 * size, number, 7), drawn(0.2 * size, number, 8),
    drawn(0.2 * size, number, 9), drawn(0.02, number, 10), drawn(0.02, number, 11), drawn(0.1, number, 12),
    drawn(0.05, number, 13), drawn(1, number, 14), drawn(0.2, number, 15)
FROM numbered ORDER BY setup, placement, init, depth, seed, stack, block;

-- What only the page's setup has: predictions, and Jacobians between the blocks of stacks that are not the deepest.
CREATE TEMP TABLE stack AS
SELECT setup, placement, init, depth, number FROM wish WHERE setup = 'page' AND seed = 0;

INSERT INTO predicted_value (setup, placement, init, depth, stack, block, quantity, theory, source, value)
SELECT setup, placement, init, depth, 'decoder', block, quantity, 'mean_field', 'invented', uniform(number, block)
FROM (SELECT *, unnest(range(1, depth + 1)) AS block FROM stack)
    CROSS JOIN (SELECT unnest(['stream_rms', 'grad_w2', 'grad_stream', 'branch_rms_ffn']) AS quantity)
UNION ALL SELECT setup, placement, init, depth, NULL, NULL, 'sigma', 'mean_field', 'invented', uniform(number, 0)
FROM stack ORDER BY ALL;

CREATE TEMP TABLE path AS
SELECT 'paths' AS setup, placement, init, depth, seed, md5(concat_ws(' ', 'paths', placement, init, depth, seed)) AS key,
    hash(number, seed) AS number
FROM stack CROSS JOIN (SELECT unnest(range(3)) AS seed) WHERE depth <= 32 OR (depth = 64 AND init = 'xavier_uniform');

INSERT INTO cell (key, setup, placement, init, depth, seed, status, measured_at, measurement_version, wall_s, refresh,
    "full", peak_mb, kind)
SELECT key, setup, placement, init, depth, seed, 'ok', TIMESTAMP '2026-01-01', 1, drawn(depth, number, 6), 1, true,
    drawn(500, number, 7), 'paths'
FROM path ORDER BY setup, placement, init, depth, seed;

INSERT INTO path_reading (setup, placement, init, depth, seed, from_block, to_block, n_probes, square, square_se, trace,
    trace_se)
SELECT setup, placement, init, depth, seed, from_block, to_block, 8, drawn(1, number, to_block), 0.01,
    uniform(from_block, number), 0.01
FROM (SELECT *, unnest(range(0, to_block)) AS from_block
    FROM (SELECT *, unnest(range(1, depth + 1)) AS to_block FROM path))
ORDER BY setup, placement, init, depth, seed, from_block, to_block;

CREATE TEMP TABLE run AS
SELECT placement, init, depth, optimiser, max_lr, warmup, seed,
    hash(placement, init, depth, optimiser, max_lr, warmup, seed) AS number
FROM (SELECT DISTINCT placement, init FROM family WHERE init = 'xavier_uniform')
    CROSS JOIN (SELECT unnest([6, 12, 24]) AS depth) CROSS JOIN (SELECT unnest(['adam', 'sgd']) AS optimiser)
    CROSS JOIN (SELECT unnest([1e-4, 1e-3]) AS max_lr) CROSS JOIN (SELECT unnest([0, 100]) AS warmup)
    CROSS JOIN (SELECT unnest(range(3)) AS seed);

INSERT INTO training_step (placement, init, depth, optimiser, max_lr, warmup, seed, step, lr, loss, status)
SELECT placement, init, depth, optimiser, max_lr, warmup, seed, step, max_lr, drawn(7, number, step), 'ok'
FROM (SELECT *, unnest(range(150)) AS step FROM run)
ORDER BY placement, init, depth, optimiser, max_lr, warmup, seed, step;

INSERT INTO training_block BY NAME
SELECT placement, init, depth, optimiser, max_lr, warmup, seed, step, 'decoder' AS stack, block,
    drawn(1, number, block * step) AS stream_rms, drawn(0.3, block * step, number) AS grad_w2
FROM (SELECT *, unnest(range(1, depth + 1)) AS block FROM run) CROSS JOIN (SELECT unnest([0, 10, 100]) AS step)
ORDER BY placement, init, depth, optimiser, max_lr, warmup, seed, step, block;

INSERT INTO verdict (claim_id, source, statement, estimate, low, high, n_seeds, verdict, why)
SELECT format('X{}', number), 'invented', 'invented', 1, 0, 2, 10, 'reproduced', 'invented'
FROM (SELECT unnest(range(50)) AS number);

INSERT INTO evidence (claim_id, part, setup, estimate, low, high, n_seeds, holds)
SELECT claim_id, part, 'page', 1, 0, 2, 10, true
FROM verdict CROSS JOIN (SELECT unnest(['top', 'bottom', 'slope']) AS part);
