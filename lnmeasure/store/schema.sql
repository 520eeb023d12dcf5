-- Tables may change with the schema version; the views below them are the contract with analysts.

CREATE TABLE meta (
    schema_version INTEGER NOT NULL, generation INTEGER NOT NULL, published_at TIMESTAMP,
    package_version VARCHAR, commit VARCHAR
);
CREATE TABLE setup (
    name VARCHAR NOT NULL, width INTEGER, heads INTEGER, ffn_ratio INTEGER, activation VARCHAR, attention VARCHAR,
    output_projection BOOLEAN, norm VARCHAR, eps DOUBLE, seq_len INTEGER, batch INTEGER, vocab INTEGER,
    embedding_std DOUBLE, input VARCHAR, data VARCHAR, tied_head BOOLEAN, dtype VARCHAR,
    encoder VARCHAR, encoder_cosine DOUBLE
);
CREATE TABLE registered (
    kind VARCHAR NOT NULL, name VARCHAR NOT NULL, equation VARCHAR NOT NULL, source VARCHAR NOT NULL,
    unconfirmed VARCHAR
);
CREATE TABLE refresh (
    refresh INTEGER NOT NULL, started TIMESTAMP NOT NULL, finished TIMESTAMP, planned INTEGER, measured INTEGER,
    reused INTEGER, failed INTEGER, package VARCHAR, commit VARCHAR, torch VARCHAR, python VARCHAR,
    processor VARCHAR, threads INTEGER, wall_s DOUBLE
);
CREATE TABLE cell (
    key VARCHAR NOT NULL, setup VARCHAR NOT NULL, placement VARCHAR NOT NULL, init VARCHAR NOT NULL,
    depth INTEGER NOT NULL, seed INTEGER NOT NULL, sigma FLOAT, sigma_dual FLOAT, top_grad_w2 FLOAT, loss FLOAT,
    embedding_rms FLOAT, status VARCHAR NOT NULL, measured_at TIMESTAMP NOT NULL,
    measurement_version INTEGER NOT NULL, wall_s FLOAT NOT NULL, refresh INTEGER NOT NULL, "full" BOOLEAN NOT NULL,
    peak_mb FLOAT, kind VARCHAR NOT NULL
);
CREATE TABLE path_reading (
    setup VARCHAR NOT NULL, placement VARCHAR NOT NULL, init VARCHAR NOT NULL, depth INTEGER NOT NULL,
    seed INTEGER NOT NULL, from_block INTEGER NOT NULL, to_block INTEGER NOT NULL, n_probes INTEGER NOT NULL,
    square FLOAT, square_se FLOAT, trace FLOAT, trace_se FLOAT
);
CREATE TABLE block_reading (
    setup VARCHAR NOT NULL, placement VARCHAR NOT NULL, init VARCHAR NOT NULL, depth INTEGER NOT NULL,
    seed INTEGER NOT NULL, stack VARCHAR NOT NULL, block INTEGER NOT NULL, stream_rms FLOAT, stream_rms_dual FLOAT,
    branch_rms_attention FLOAT, branch_rms_ffn FLOAT, grad_w1 FLOAT, grad_w2 FLOAT, grad_wq FLOAT, grad_wk FLOAT,
    grad_wv FLOAT, grad_wo FLOAT, grad_stream FLOAT, grad_presum FLOAT, token_cosine FLOAT,
    cross_sequence_cosine FLOAT, attention_logit_std FLOAT, attention_participation FLOAT
);
-- What the grids ask for, cell by cell; skipped says why a cell is left out on purpose, full whether every reading is
-- asked for or those of the whole stack only.
CREATE TABLE planned (
    grid VARCHAR NOT NULL, key VARCHAR NOT NULL, setup VARCHAR NOT NULL, placement VARCHAR NOT NULL,
    init VARCHAR NOT NULL, depth INTEGER NOT NULL, seed INTEGER NOT NULL, skipped VARCHAR, "full" BOOLEAN NOT NULL
);
-- Cells that raised an error or killed their process, and how often; gone once the cell is measured.
CREATE TABLE failure (
    key VARCHAR NOT NULL, setup VARCHAR NOT NULL, placement VARCHAR NOT NULL, init VARCHAR NOT NULL,
    depth INTEGER NOT NULL, seed INTEGER NOT NULL, attempts INTEGER NOT NULL, reason VARCHAR NOT NULL,
    failed_at TIMESTAMP NOT NULL, refresh INTEGER NOT NULL
);
CREATE TABLE predicted_value (
    setup VARCHAR NOT NULL, placement VARCHAR NOT NULL, init VARCHAR NOT NULL, depth INTEGER NOT NULL, stack VARCHAR,
    block INTEGER, quantity VARCHAR NOT NULL, theory VARCHAR NOT NULL, source VARCHAR NOT NULL, value DOUBLE
);
CREATE TABLE training_step (
    placement VARCHAR NOT NULL, init VARCHAR NOT NULL, depth INTEGER NOT NULL, optimiser VARCHAR NOT NULL,
    max_lr DOUBLE NOT NULL, warmup INTEGER NOT NULL, seed INTEGER NOT NULL, step INTEGER NOT NULL, lr DOUBLE,
    loss FLOAT, status VARCHAR NOT NULL
);
CREATE TABLE training_block (
    placement VARCHAR NOT NULL, init VARCHAR NOT NULL, depth INTEGER NOT NULL, optimiser VARCHAR NOT NULL,
    max_lr DOUBLE NOT NULL, warmup INTEGER NOT NULL, seed INTEGER NOT NULL, step INTEGER NOT NULL,
    stack VARCHAR NOT NULL, block INTEGER NOT NULL, stream_rms FLOAT, branch_rms_attention FLOAT,
    branch_rms_ffn FLOAT, grad_w1 FLOAT, grad_w2 FLOAT, grad_wq FLOAT, grad_wk FLOAT, grad_wv FLOAT, grad_wo FLOAT,
    grad_stream FLOAT, grad_presum FLOAT, token_cosine FLOAT, cross_sequence_cosine FLOAT, attention_logit_std FLOAT,
    attention_participation FLOAT
);
CREATE TABLE verdict (
    claim_id VARCHAR NOT NULL, source VARCHAR NOT NULL, statement VARCHAR NOT NULL, expected VARCHAR,
    estimate DOUBLE, low DOUBLE, high DOUBLE, n_seeds INTEGER, verdict VARCHAR NOT NULL, why VARCHAR NOT NULL,
    evidence_sql VARCHAR
);
CREATE TABLE evidence (
    claim_id VARCHAR NOT NULL, part VARCHAR NOT NULL, setup VARCHAR NOT NULL, expected VARCHAR, estimate DOUBLE,
    low DOUBLE, high DOUBLE, n_seeds INTEGER, holds BOOLEAN
);
-- Student's t at 0.975 with n - 1 degrees of freedom, by number of seeds n (null for n = 1); filled when created.
CREATE TABLE t_quantile (n INTEGER NOT NULL, t DOUBLE);
-- The depths a fitted slope uses, by the range it is named after. The first range is the default.
CREATE TABLE slope_depth (depth_min INTEGER NOT NULL, depth_max INTEGER NOT NULL, depth INTEGER NOT NULL);
INSERT INTO slope_depth SELECT 8, 64, unnest([8, 12, 16, 24, 32, 48, 64]);
INSERT INTO slope_depth SELECT 1, 64, unnest([1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
INSERT INTO slope_depth SELECT 2, 64, unnest([2, 4, 8, 16, 32, 64]);
INSERT INTO slope_depth SELECT 2, 32, unnest([2, 4, 8, 16, 32]);

-- Mean over seeds and its standard error; both null where a seed's reading is null, so that every mean has n_seeds.
CREATE MACRO mean_of(x) AS CASE WHEN count(x) = count(*) THEN avg(x) END;
CREATE MACRO sem_of(x) AS CASE WHEN count(x) = count(*) THEN stddev_samp(x) / sqrt(count(*)) END;

CREATE VIEW by_cell AS
SELECT setup, placement, init, depth, seed, sigma, sigma_dual, top_grad_w2, loss, embedding_rms, status, measured_at,
    measurement_version, wall_s, refresh, "full", peak_mb
FROM cell WHERE kind = 'readings';

CREATE VIEW by_block AS
SELECT setup, placement, init, depth, seed, stack, block, stream_rms, stream_rms_dual, branch_rms_attention,
    branch_rms_ffn, grad_w1, grad_w2, grad_wq, grad_wk, grad_wv, grad_wo, grad_stream, grad_presum, token_cosine,
    cross_sequence_cosine, attention_logit_std, attention_participation
FROM block_reading;

-- bottom_grad_w2 is of the seeds whose blocks are measured, n_seeds_full of them; the others are of n_seeds.
CREATE VIEW by_depth AS
WITH bottom AS (
    SELECT setup, placement, init, depth, count(*)::INTEGER AS n_seeds_full,
        mean_of(grad_w2) AS bottom_grad_w2_mean, sem_of(grad_w2) AS bottom_grad_w2_sem
    FROM block_reading WHERE block = 1 AND stack = 'decoder'
    GROUP BY setup, placement, init, depth
), moments AS (
    SELECT setup, placement, init, depth, count(*)::INTEGER AS n_seeds,
        mean_of(sigma) AS sigma_mean, sem_of(sigma) AS sigma_sem,
        mean_of(top_grad_w2) AS top_grad_w2_mean, sem_of(top_grad_w2) AS top_grad_w2_sem,
        mean_of(loss) AS loss_mean, sem_of(loss) AS loss_sem,
        exp(mean_of(CASE WHEN top_grad_w2 > 0 THEN ln(top_grad_w2) END)) AS top_grad_w2_geomean
    FROM by_cell
    GROUP BY setup, placement, init, depth
)
SELECT setup, placement, init, depth, n_seeds, coalesce(n_seeds_full, 0) AS n_seeds_full,
    sigma_mean, sigma_mean - ts.t * sigma_sem AS sigma_low, sigma_mean + ts.t * sigma_sem AS sigma_high,
    top_grad_w2_mean, top_grad_w2_mean - ts.t * top_grad_w2_sem AS top_grad_w2_low,
    top_grad_w2_mean + ts.t * top_grad_w2_sem AS top_grad_w2_high,
    bottom_grad_w2_mean, bottom_grad_w2_mean - tb.t * bottom_grad_w2_sem AS bottom_grad_w2_low,
    bottom_grad_w2_mean + tb.t * bottom_grad_w2_sem AS bottom_grad_w2_high,
    loss_mean, loss_mean - ts.t * loss_sem AS loss_low, loss_mean + ts.t * loss_sem AS loss_high,
    top_grad_w2_geomean
FROM moments LEFT JOIN bottom USING (setup, placement, init, depth)
    LEFT JOIN t_quantile ts ON ts.n = n_seeds LEFT JOIN t_quantile tb ON tb.n = n_seeds_full;

CREATE VIEW profile AS
WITH moments AS (
    SELECT setup, placement, init, depth, stack, block, count(*)::INTEGER AS n_seeds,
        mean_of(stream_rms) AS stream_rms_mean, sem_of(stream_rms) AS stream_rms_sem,
        mean_of(stream_rms_dual) AS stream_rms_dual_mean, sem_of(stream_rms_dual) AS stream_rms_dual_sem,
        mean_of(branch_rms_attention) AS branch_rms_attention_mean,
        sem_of(branch_rms_attention) AS branch_rms_attention_sem,
        mean_of(branch_rms_ffn) AS branch_rms_ffn_mean, sem_of(branch_rms_ffn) AS branch_rms_ffn_sem,
        mean_of(grad_w1) AS grad_w1_mean, sem_of(grad_w1) AS grad_w1_sem,
        mean_of(grad_w2) AS grad_w2_mean, sem_of(grad_w2) AS grad_w2_sem,
        mean_of(grad_wq) AS grad_wq_mean, sem_of(grad_wq) AS grad_wq_sem,
        mean_of(grad_wk) AS grad_wk_mean, sem_of(grad_wk) AS grad_wk_sem,
        mean_of(grad_wv) AS grad_wv_mean, sem_of(grad_wv) AS grad_wv_sem,
        mean_of(grad_wo) AS grad_wo_mean, sem_of(grad_wo) AS grad_wo_sem,
        mean_of(grad_stream) AS grad_stream_mean, sem_of(grad_stream) AS grad_stream_sem,
        mean_of(grad_presum) AS grad_presum_mean, sem_of(grad_presum) AS grad_presum_sem,
        mean_of(token_cosine) AS token_cosine_mean, sem_of(token_cosine) AS token_cosine_sem,
        mean_of(cross_sequence_cosine) AS cross_sequence_cosine_mean,
        sem_of(cross_sequence_cosine) AS cross_sequence_cosine_sem,
        mean_of(attention_logit_std) AS attention_logit_std_mean,
        sem_of(attention_logit_std) AS attention_logit_std_sem,
        mean_of(attention_participation) AS attention_participation_mean,
        sem_of(attention_participation) AS attention_participation_sem
    FROM block_reading
    GROUP BY setup, placement, init, depth, stack, block
)
SELECT setup, placement, init, depth, stack, block, n_seeds,
    stream_rms_mean, stream_rms_mean - t * stream_rms_sem AS stream_rms_low,
    stream_rms_mean + t * stream_rms_sem AS stream_rms_high,
    stream_rms_dual_mean, stream_rms_dual_mean - t * stream_rms_dual_sem AS stream_rms_dual_low,
    stream_rms_dual_mean + t * stream_rms_dual_sem AS stream_rms_dual_high,
    branch_rms_attention_mean, branch_rms_attention_mean - t * branch_rms_attention_sem AS branch_rms_attention_low,
    branch_rms_attention_mean + t * branch_rms_attention_sem AS branch_rms_attention_high,
    branch_rms_ffn_mean, branch_rms_ffn_mean - t * branch_rms_ffn_sem AS branch_rms_ffn_low,
    branch_rms_ffn_mean + t * branch_rms_ffn_sem AS branch_rms_ffn_high,
    grad_w1_mean, grad_w1_mean - t * grad_w1_sem AS grad_w1_low, grad_w1_mean + t * grad_w1_sem AS grad_w1_high,
    grad_w2_mean, grad_w2_mean - t * grad_w2_sem AS grad_w2_low, grad_w2_mean + t * grad_w2_sem AS grad_w2_high,
    grad_wq_mean, grad_wq_mean - t * grad_wq_sem AS grad_wq_low, grad_wq_mean + t * grad_wq_sem AS grad_wq_high,
    grad_wk_mean, grad_wk_mean - t * grad_wk_sem AS grad_wk_low, grad_wk_mean + t * grad_wk_sem AS grad_wk_high,
    grad_wv_mean, grad_wv_mean - t * grad_wv_sem AS grad_wv_low, grad_wv_mean + t * grad_wv_sem AS grad_wv_high,
    grad_wo_mean, grad_wo_mean - t * grad_wo_sem AS grad_wo_low, grad_wo_mean + t * grad_wo_sem AS grad_wo_high,
    grad_stream_mean, grad_stream_mean - t * grad_stream_sem AS grad_stream_low,
    grad_stream_mean + t * grad_stream_sem AS grad_stream_high,
    grad_presum_mean, grad_presum_mean - t * grad_presum_sem AS grad_presum_low,
    grad_presum_mean + t * grad_presum_sem AS grad_presum_high,
    token_cosine_mean, token_cosine_mean - t * token_cosine_sem AS token_cosine_low,
    token_cosine_mean + t * token_cosine_sem AS token_cosine_high,
    cross_sequence_cosine_mean,
    cross_sequence_cosine_mean - t * cross_sequence_cosine_sem AS cross_sequence_cosine_low,
    cross_sequence_cosine_mean + t * cross_sequence_cosine_sem AS cross_sequence_cosine_high,
    attention_logit_std_mean, attention_logit_std_mean - t * attention_logit_std_sem AS attention_logit_std_low,
    attention_logit_std_mean + t * attention_logit_std_sem AS attention_logit_std_high,
    attention_participation_mean,
    attention_participation_mean - t * attention_participation_sem AS attention_participation_low,
    attention_participation_mean + t * attention_participation_sem AS attention_participation_high
FROM moments LEFT JOIN t_quantile ON n = n_seeds;

-- Ratios on logs, paired by seed: a seed's draws are the same for every placement.
CREATE VIEW comparison AS
WITH pair AS (
    SELECT setup, other.placement, init, depth, seed,
        ln(post.top_grad_w2::DOUBLE) - ln(other.top_grad_w2::DOUBLE) AS log_ratio
    FROM by_cell other JOIN by_cell post USING (setup, init, depth, seed)
    WHERE post.placement = 'post' AND other.placement <> 'post' AND post.top_grad_w2 > 0 AND other.top_grad_w2 > 0
), moments AS (
    SELECT setup, placement, init, depth, count(*)::INTEGER AS n_seeds, mean_of(log_ratio) AS mean,
        sem_of(log_ratio) AS sem
    FROM pair
    GROUP BY setup, placement, init, depth
)
SELECT setup, placement, init, depth, n_seeds, exp(mean) AS estimate, exp(mean - t * sem) AS low,
    exp(mean + t * sem) AS high
FROM moments LEFT JOIN t_quantile ON n = n_seeds;

-- Fitted per seed over every depth of the range, then the interval over seeds: draws shared by all depths count once.
CREATE VIEW slope AS
WITH bottom AS (
    SELECT setup, placement, init, depth, seed, grad_w2 AS value
    FROM block_reading WHERE block = 1 AND stack = 'decoder'
), reading AS (
    SELECT setup, placement, init, depth, seed, 'sigma' AS quantity, sigma AS value FROM by_cell
    UNION ALL SELECT setup, placement, init, depth, seed, 'top_grad_w2', top_grad_w2 FROM by_cell
    UNION ALL SELECT setup, placement, init, depth, seed, 'bottom_grad_w2', value FROM bottom
), wanted AS (
    SELECT *, count(*) OVER (PARTITION BY depth_min, depth_max) AS n_depths FROM slope_depth
), fitted AS (
    SELECT setup, placement, init, quantity, depth_min, depth_max, seed, n_depths,
        regr_slope(ln(value::DOUBLE), ln(depth::DOUBLE)) AS slope
    FROM reading JOIN wanted USING (depth)
    WHERE value > 0
    GROUP BY setup, placement, init, quantity, depth_min, depth_max, seed, n_depths
    HAVING count(*) = n_depths
), moments AS (
    SELECT setup, placement, init, quantity, depth_min, depth_max, n_depths::INTEGER AS n_depths,
        count(*)::INTEGER AS n_seeds, mean_of(slope) AS estimate, sem_of(slope) AS sem
    FROM fitted
    GROUP BY setup, placement, init, quantity, depth_min, depth_max, n_depths
)
SELECT setup, placement, init, quantity, depth_min, depth_max, n_depths, n_seeds, estimate, estimate - t * sem AS low,
    estimate + t * sem AS high
FROM moments LEFT JOIN t_quantile ON n = n_seeds;

CREATE VIEW setup_info AS
SELECT name, width, heads, ffn_ratio, activation, attention, output_projection, norm, eps, seq_len, batch, vocab,
    embedding_std, input, data, tied_head, dtype, encoder, encoder_cosine, ffn_ratio * width * width AS numel_w1,
    width * ffn_ratio * width AS numel_w2,
    width * width AS numel_attention
FROM setup;

CREATE VIEW placement_info AS SELECT name, equation, source, unconfirmed FROM registered WHERE kind = 'placement';

CREATE VIEW init_info AS SELECT name, equation, source, unconfirmed FROM registered WHERE kind = 'init';

CREATE VIEW refresh_log AS
SELECT refresh, started, finished, planned, measured, reused, failed, package, commit, torch, python, processor,
    threads, wall_s
FROM refresh;

-- A key names setting and MEASUREMENT_VERSION, so a cell or failure of another version counts as missing.
-- The key implies the setup: joining on it as well lets a filter reach the cells.
CREATE VIEW coverage AS
SELECT planned.grid, planned.setup, planned.placement, planned.init, planned.depth, count(*)::INTEGER AS planned,
    count(*) FILTER (planned.skipped IS NULL AND cell."full" >= planned."full")::INTEGER AS ok,
    count(*) FILTER (planned.skipped IS NOT NULL)::INTEGER AS skipped,
    count(*) FILTER (planned.skipped IS NULL AND NOT coalesce(cell."full" >= planned."full", false)
        AND failure.key IS NOT NULL)::INTEGER AS failed,
    count(*) FILTER (planned.skipped IS NULL AND NOT coalesce(cell."full" >= planned."full", false)
        AND failure.key IS NULL)::INTEGER AS missing,
    string_agg(DISTINCT coalesce(planned.skipped, failure.reason), '; ' ORDER BY coalesce(planned.skipped, failure.reason))
        AS reason
FROM planned LEFT JOIN cell USING (key, setup) LEFT JOIN failure USING (key, setup)
GROUP BY planned.grid, planned.setup, planned.placement, planned.init, planned.depth;

CREATE VIEW prediction AS
SELECT setup, placement, init, depth, stack, block, quantity, theory, source, value FROM predicted_value;

CREATE VIEW path_by_seed AS
SELECT setup, placement, init, depth, seed, from_block, to_block, n_probes, square, square_se, trace, trace_se
FROM path_reading;

-- Standard errors are over seeds, of one seed over its probes. The square of an estimated trace is too large by its
-- variance, which is taken off again.
CREATE VIEW path_jacobian AS
WITH one AS (
    SELECT *, sqrt(square::DOUBLE) AS size, square_se / (2 * sqrt(square::DOUBLE)) AS size_error,
        greatest(trace::DOUBLE ^ 2 - coalesce(trace_se, 0)::DOUBLE ^ 2, 0) / nullif(square::DOUBLE, 0) AS share,
        2 * abs(trace::DOUBLE) * trace_se / nullif(square::DOUBLE, 0) AS share_error
    FROM path_by_seed
)
SELECT setup, placement, init, depth, from_block, to_block, count(*)::INTEGER AS n_seeds,
    max(n_probes)::INTEGER AS n_probes, mean_of(size) AS size,
    CASE WHEN count(*) > 1 THEN sem_of(size) ELSE max(size_error) END AS size_se, mean_of(share) AS identity_share,
    CASE WHEN count(*) > 1 THEN sem_of(share) ELSE max(share_error) END AS identity_share_se,
    mean_of(trace::DOUBLE) AS trace, CASE WHEN count(*) > 1 THEN sem_of(trace::DOUBLE) ELSE max(trace_se) END AS trace_se
FROM one
GROUP BY setup, placement, init, depth, from_block, to_block;

CREATE VIEW first_steps AS
SELECT placement, init, depth, optimiser, max_lr, warmup, seed, step, lr, loss, status FROM training_step;

CREATE VIEW first_steps_block AS
SELECT placement, init, depth, optimiser, max_lr, warmup, seed, step, stack, block, stream_rms, branch_rms_attention,
    branch_rms_ffn, grad_w1, grad_w2, grad_wq, grad_wk, grad_wv, grad_wo, grad_stream, grad_presum, token_cosine,
    cross_sequence_cosine, attention_logit_std, attention_participation
FROM training_block;

CREATE VIEW claim_verdict AS
SELECT claim_id, source, statement, expected, estimate, low, high, n_seeds, verdict, why, evidence_sql FROM verdict;

CREATE VIEW claim_evidence AS
SELECT claim_id, part, setup, expected, estimate, low, high, n_seeds, holds FROM evidence;
