"""How time and memory grow with threads and rows."""
