"""Runs one query after another on α,β-CROWN, which is imported once.

alpha_beta_crown_runner.py --queries QUERIES REPLIES

Run by its own interpreter, with `complete_verifier` of its repository on the path. It imports nothing of
Dokimos; the arguments of a query are those of its main script, which does the same.
"""

from __future__ import annotations

import importlib
import sys


def load() -> None:
    """Import its main script, which only starts when it is called."""
    importlib.import_module("abcrown")


def main() -> None:
    """What its main script does."""
    importlib.import_module("abcrown").ABCROWN(args=sys.argv[1:]).main()


if __name__ == "__main__":
    from warm_queries import serve

    serve(main, load)
