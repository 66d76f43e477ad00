"""From a table to a measured model."""
