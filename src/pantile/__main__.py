"""`python -m pantile` is the command `pantile`."""

from .cli import main

raise SystemExit(main())
