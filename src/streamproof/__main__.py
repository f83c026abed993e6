"""``python -m streamproof``: the same as the command ``streamproof``."""

from streamproof.cli.main import main

if __name__ == "__main__":
    main()
