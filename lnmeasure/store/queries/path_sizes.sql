-- one row per compared placement and pair of blocks at the depth: size of d x_to / d x_from and its part along identity
SELECT placement, from_block, to_block, n_seeds, n_probes, size, size_se, identity_share, identity_share_se, trace
FROM path_jacobian
WHERE setup = $setup AND init = $init AND depth = $depth AND list_contains($compared, placement)
ORDER BY placement, from_block, to_block
