-- one row: post's sigma at the depth, the paper's value (FFN as wide as the stream), and the same for the setup's FFN
-- Xiong et al. 2020, Lemma 2: sigma^2 = 1 + g; a Xavier FFN of ratio r adds g = 2 r / (1 + r)^2, so 1/2 only for r = 1
SELECT sqrt(1 + 2 * 1 / (1 + 1) ** 2) AS paper, sqrt(1 + 2 * ffn_ratio / (1 + ffn_ratio) ** 2) AS corrected, ffn_ratio,
    sigma_mean AS mean, sigma_low AS low, sigma_high AS high, n_seeds
FROM by_depth JOIN setup_info ON setup_info.name = setup
WHERE setup = $setup AND init = $init AND depth = $depth AND placement = 'post'
