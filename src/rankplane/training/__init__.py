"""From the rows of a file to a measured model."""
