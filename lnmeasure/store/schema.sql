-- Tables may change with the schema version; the views below them are the contract with analysts.

CREATE TABLE meta (
    schema_version INTEGER NOT NULL, generation INTEGER NOT NULL, published_at TIMESTAMP,
    package_version VARCHAR, commit VARCHAR
);
CREATE TABLE setup (
    name VARCHAR NOT NULL, width INTEGER, heads INTEGER, ffn_ratio INTEGER, activation VARCHAR, attention VARCHAR,
    output_projection BOOLEAN, norm VARCHAR, eps DOUBLE, seq_len INTEGER, batch INTEGER, vocab INTEGER,
    embedding_std DOUBLE, input VARCHAR, data VARCHAR, tied_head BOOLEAN, dtype VARCHAR
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
    measurement_version INTEGER NOT NULL, wall_s FLOAT NOT NULL, refresh INTEGER NOT NULL
);
CREATE TABLE block_reading (
    setup VARCHAR NOT NULL, placement VARCHAR NOT NULL, init VARCHAR NOT NULL, depth INTEGER NOT NULL,
    seed INTEGER NOT NULL, stack VARCHAR NOT NULL, block INTEGER NOT NULL, stream_rms FLOAT,
    branch_rms_attention FLOAT, branch_rms_ffn FLOAT, grad_w1 FLOAT, grad_w2 FLOAT, grad_wq FLOAT, grad_wk FLOAT,
    grad_wv FLOAT, grad_wo FLOAT, grad_stream FLOAT, grad_presum FLOAT, token_cosine FLOAT,
    cross_sequence_cosine FLOAT, attention_logit_std FLOAT, attention_participation FLOAT
);
-- Student's t at 0.975 with n - 1 degrees of freedom, by number of seeds n (null for n = 1); filled when created.
CREATE TABLE t_quantile (n INTEGER NOT NULL, t DOUBLE);
-- The depths a fitted slope uses, by the range it is named after. The first range is the default.
CREATE TABLE slope_depth (depth_min INTEGER NOT NULL, depth_max INTEGER NOT NULL, depth INTEGER NOT NULL);
INSERT INTO slope_depth SELECT 8, 64, unnest([8, 12, 16, 24, 32, 48, 64]);
INSERT INTO slope_depth SELECT 1, 64, unnest([1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]);

CREATE MACRO half_width(x) AS (
    (SELECT list(q.t ORDER BY q.n) FROM t_quantile q)[count(x)] * stddev_samp(x) / sqrt(count(x))
);
CREATE MACRO low95(x) AS avg(x) - half_width(x);
CREATE MACRO high95(x) AS avg(x) + half_width(x);

CREATE VIEW by_cell AS
SELECT setup, placement, init, depth, seed, sigma, sigma_dual, top_grad_w2, loss, embedding_rms, status, measured_at,
    measurement_version, wall_s, refresh
FROM cell;

CREATE VIEW by_block AS
SELECT setup, placement, init, depth, seed, stack, block, stream_rms, branch_rms_attention, branch_rms_ffn, grad_w1,
    grad_w2, grad_wq, grad_wk, grad_wv, grad_wo, grad_stream, grad_presum, token_cosine, cross_sequence_cosine,
    attention_logit_std, attention_participation
FROM block_reading;

CREATE VIEW by_depth AS
WITH bottom AS (
    SELECT setup, placement, init, depth, seed, grad_w2 AS bottom_grad_w2
    FROM block_reading WHERE block = 1 AND stack = 'decoder'
)
SELECT setup, placement, init, depth, count(*)::INTEGER AS n_seeds,
    avg(sigma) AS sigma_mean, low95(sigma) AS sigma_low, high95(sigma) AS sigma_high,
    avg(top_grad_w2) AS top_grad_w2_mean, low95(top_grad_w2) AS top_grad_w2_low,
    high95(top_grad_w2) AS top_grad_w2_high,
    avg(bottom_grad_w2) AS bottom_grad_w2_mean, low95(bottom_grad_w2) AS bottom_grad_w2_low,
    high95(bottom_grad_w2) AS bottom_grad_w2_high,
    avg(loss) AS loss_mean, low95(loss) AS loss_low, high95(loss) AS loss_high,
    exp(avg(ln(top_grad_w2)) FILTER (WHERE top_grad_w2 > 0)) AS top_grad_w2_geomean
FROM cell LEFT JOIN bottom USING (setup, placement, init, depth, seed)
GROUP BY setup, placement, init, depth;

CREATE VIEW profile AS
SELECT setup, placement, init, depth, stack, block, count(*)::INTEGER AS n_seeds,
    avg(stream_rms) AS stream_rms_mean, low95(stream_rms) AS stream_rms_low, high95(stream_rms) AS stream_rms_high,
    avg(branch_rms_attention) AS branch_rms_attention_mean, low95(branch_rms_attention) AS branch_rms_attention_low,
    high95(branch_rms_attention) AS branch_rms_attention_high,
    avg(branch_rms_ffn) AS branch_rms_ffn_mean, low95(branch_rms_ffn) AS branch_rms_ffn_low,
    high95(branch_rms_ffn) AS branch_rms_ffn_high,
    avg(grad_w1) AS grad_w1_mean, low95(grad_w1) AS grad_w1_low, high95(grad_w1) AS grad_w1_high,
    avg(grad_w2) AS grad_w2_mean, low95(grad_w2) AS grad_w2_low, high95(grad_w2) AS grad_w2_high,
    avg(grad_wq) AS grad_wq_mean, low95(grad_wq) AS grad_wq_low, high95(grad_wq) AS grad_wq_high,
    avg(grad_wk) AS grad_wk_mean, low95(grad_wk) AS grad_wk_low, high95(grad_wk) AS grad_wk_high,
    avg(grad_wv) AS grad_wv_mean, low95(grad_wv) AS grad_wv_low, high95(grad_wv) AS grad_wv_high,
    avg(grad_wo) AS grad_wo_mean, low95(grad_wo) AS grad_wo_low, high95(grad_wo) AS grad_wo_high,
    avg(grad_stream) AS grad_stream_mean, low95(grad_stream) AS grad_stream_low,
    high95(grad_stream) AS grad_stream_high,
    avg(grad_presum) AS grad_presum_mean, low95(grad_presum) AS grad_presum_low,
    high95(grad_presum) AS grad_presum_high,
    avg(token_cosine) AS token_cosine_mean, low95(token_cosine) AS token_cosine_low,
    high95(token_cosine) AS token_cosine_high,
    avg(cross_sequence_cosine) AS cross_sequence_cosine_mean, low95(cross_sequence_cosine)
    AS cross_sequence_cosine_low, high95(cross_sequence_cosine) AS cross_sequence_cosine_high,
    avg(attention_logit_std) AS attention_logit_std_mean, low95(attention_logit_std) AS attention_logit_std_low,
    high95(attention_logit_std) AS attention_logit_std_high,
    avg(attention_participation) AS attention_participation_mean,
    low95(attention_participation) AS attention_participation_low,
    high95(attention_participation) AS attention_participation_high
FROM block_reading
GROUP BY setup, placement, init, depth, stack, block;

-- Ratios on logs, paired by seed: a seed's draws are the same for every placement.
CREATE VIEW comparison AS
WITH pair AS (
    SELECT setup, other.placement, init, depth, seed, ln(post.top_grad_w2 / other.top_grad_w2) AS log_ratio
    FROM cell other JOIN cell post USING (setup, init, depth, seed)
    WHERE post.placement = 'post' AND other.placement <> 'post' AND post.top_grad_w2 > 0 AND other.top_grad_w2 > 0
)
SELECT setup, placement, init, depth, count(*)::INTEGER AS n_seeds, exp(avg(log_ratio)) AS estimate,
    exp(low95(log_ratio)) AS low, exp(high95(log_ratio)) AS high
FROM pair
GROUP BY setup, placement, init, depth;

-- Fitted per seed over every depth of the range, then the interval over seeds: draws shared by all depths count once.
CREATE VIEW slope AS
WITH bottom AS (
    SELECT setup, placement, init, depth, seed, grad_w2 AS value
    FROM block_reading WHERE block = 1 AND stack = 'decoder'
), reading AS (
    SELECT setup, placement, init, depth, seed, 'sigma' AS quantity, sigma AS value FROM cell
    UNION ALL SELECT setup, placement, init, depth, seed, 'top_grad_w2', top_grad_w2 FROM cell
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
)
SELECT setup, placement, init, quantity, depth_min, depth_max, n_depths::INTEGER AS n_depths,
    count(*)::INTEGER AS n_seeds, avg(slope) AS estimate, low95(slope) AS low, high95(slope) AS high
FROM fitted
GROUP BY setup, placement, init, quantity, depth_min, depth_max, n_depths;

CREATE VIEW setup_info AS
SELECT name, width, heads, ffn_ratio, activation, attention, output_projection, norm, eps, seq_len, batch, vocab,
    embedding_std, input, data, tied_head, dtype, ffn_ratio * width * width AS numel_w1, width * ffn_ratio * width AS numel_w2,
    width * width AS numel_attention
FROM setup;

CREATE VIEW placement_info AS SELECT name, equation, source, unconfirmed FROM registered WHERE kind = 'placement';

CREATE VIEW init_info AS SELECT name, equation, source, unconfirmed FROM registered WHERE kind = 'init';

CREATE VIEW refresh_log AS
SELECT refresh, started, finished, planned, measured, reused, failed, package, commit, torch, python, processor,
    threads, wall_s
FROM refresh;
