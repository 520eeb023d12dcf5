-- one row per claim: what was claimed, what is measured, the verdict and why
SELECT claim_id, source, statement, expected, estimate, low, high, n_seeds, verdict, why, evidence_sql
FROM claim_verdict ORDER BY claim_id
