"""Loop IR: nodes, printer, verifier."""
