"""ACLs on the command line: their words, files of them, and why something is allowed."""
