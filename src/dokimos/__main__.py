"""``python -m dokimos`` does the same as the command ``dokimos``."""

from dokimos.cli import main

if __name__ == "__main__":
    main()
