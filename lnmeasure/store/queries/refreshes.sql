-- one row per refresh, newest first: when it measured, how many cells, by which code on which machine
SELECT refresh, started, finished, planned, measured, reused, failed, package, commit, torch, python, processor, threads,
    wall_s
FROM refresh_log
ORDER BY refresh DESC
