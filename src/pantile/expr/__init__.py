"""Types, expression nodes, typed construction, walking and printing; shared by the language and the loop IR."""
