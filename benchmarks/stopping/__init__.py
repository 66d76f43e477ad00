"""What the default stopping rule costs and gains, compared with the paper's tolerance."""
