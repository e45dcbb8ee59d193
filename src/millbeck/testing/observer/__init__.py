"""An observer of a simulated cluster: it sees every node after every turn and knows what must hold (R1-R10, D1-D9)."""
