"""Claims of papers and pages, as data, and the rules that turn readings into verdicts. Nothing but numpy and pandas."""
