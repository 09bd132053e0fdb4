"""What the command lines of several studies share."""

from __future__ import annotations

import argparse
import sys

from dokimos.core.progress import ProgressUpdate


def counted(text: str) -> int:
    """A number that is 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def positive(text: str) -> int:
    """A number that is 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def on_stderr(update: ProgressUpdate[object]) -> None:
    """Say what was done, a line each."""
    print(f"{update.done:,} of {update.total:,}: {update.note}", file=sys.stderr)
