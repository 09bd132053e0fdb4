"""Keeps libraries from starting a thread for each core in every process."""

from __future__ import annotations

import os

#: The variables that they read, at the latest when they are loaded.
THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def use_one_core() -> None:
    """Ask them to use one thread, unless the user has asked for another number."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
