"""ACLs in commands: options and output, files of ACLs, and explanations of decisions."""
