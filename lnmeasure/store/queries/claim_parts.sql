-- one row per claim and part, or part and depth: the readings that a verdict rests on
SELECT claim_id, part, setup, expected, estimate, low, high, n_seeds, holds
FROM claim_evidence ORDER BY claim_id, part, setup
