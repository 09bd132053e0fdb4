"""Keeps vibecheck loaded between queries. Run by vibecheck's own interpreter.

vibecheck_runner.py ARGUMENTS…
vibecheck_runner.py --queries QUERIES REPLIES

The arguments are those of ``python -m vibecheck``. It imports nothing of Dokimos.
"""

from __future__ import annotations

import runpy
from importlib import import_module


def load() -> None:
    """Import what every query needs."""
    for name in ("onnx", "vibecheck", "vibecheck.cli_standard", "vibecheck.pipeline", "vibecheck.api"):
        import_module(name)


def main() -> None:
    """Run vibecheck's command line in this process."""
    runpy.run_module("vibecheck", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    from warm_queries import serve

    serve(main, load)
