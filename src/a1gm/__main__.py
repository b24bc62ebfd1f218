"""``python -m a1gm``: the command line, where its executable is not on the path."""

from a1gm.cli import main

main()
