"""``python -m dokimos`` is ``dokimos``."""

from dokimos.cli import main

if __name__ == "__main__":
    main()
