"""What a process of ours sets before it works: one thread for numerical libraries, and rare collections.

Several instances side by side use the other cores. Several threads wait for each other at small products,
and add in another order: what is trained would depend on how many cores there are.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator, Mapping

#: Cycles are looked for after so many new objects; Python's 700 cost a tenth of a short command.
_NEW_OBJECTS = 50_000
#: What libraries read, at the latest when they are loaded, before they start a thread for each core.
THREADS = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def with_one_core(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which numpy uses one thread, and so do others unless the user says otherwise."""
    return {**dict.fromkeys(THREADS, "1"), **environment, "OPENBLAS_NUM_THREADS": "1"}


def use_one_core() -> None:
    """Make libraries that are loaded from now on use one thread (see `with_one_core`)."""
    os.environ.update(with_one_core(os.environ))


def collect_seldom() -> None:
    """Look for cycles of unused objects less often: nearly all that a command makes it keeps or drops."""
    gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Meanwhile, libraries that a program has loaded for itself use one thread, too."""
    if "numpy" not in sys.modules or os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
