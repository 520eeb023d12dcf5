"""What theory says a Setting reads: bounds and guides, and a mean-field prediction. numpy only."""
