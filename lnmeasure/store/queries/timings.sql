-- one row per setup and depth measured in full: median wall time of a cell in seconds, and the most memory one took in MB
SELECT setup, depth, median(wall_s)::DOUBLE AS wall_s, max(peak_mb)::DOUBLE AS peak_mb
FROM cell
WHERE "full"
GROUP BY setup, depth
ORDER BY setup, depth
