"""`python -m alembert` is the command `alembert`."""

from alembert.cli import main

main()
