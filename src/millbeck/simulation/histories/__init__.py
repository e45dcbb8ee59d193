"""Records of what clients did and saw during a run: the input of the checkers."""
