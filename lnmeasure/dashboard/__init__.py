"""Charts and prose: pure functions of DataFrames. The only part with altair."""
