"""Pipeline + schedule -> loop IR: the ordered list of passes, each in a file of its own."""
