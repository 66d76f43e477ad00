"""Tables from and to files, and which of their columns are what."""
