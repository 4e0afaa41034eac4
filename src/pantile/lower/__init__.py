"""Pipeline + schedule -> loop IR: the ordered list of passes, one file each."""
