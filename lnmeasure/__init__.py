"""lnmeasure: where the norm sits, how weights are drawn, and the size of activations and gradients."""
