"""How many requests servers answer, and how fast. All traffic stays on this machine."""
