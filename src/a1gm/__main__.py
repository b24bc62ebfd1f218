"""``python -m a1gm``: the command line, where its executable is not on the path."""

from a1gm.cli import main

if __name__ == "__main__":
    main()
