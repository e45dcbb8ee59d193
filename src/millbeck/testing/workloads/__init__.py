"""What clients do in the simulator while things break, written down in a `History` for the checkers."""
