"""The trace of a fault of ours: kept in a file, not thrown at the user."""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
import time
import traceback
from pathlib import Path

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.home import home


def keep_trace(error: BaseException) -> str:
    """Write down what happened, in Dokimos' home or where temporary files go; says where, in words."""
    trace = "".join(traceback.format_exception(error))
    command = shlex.join(sys.argv)
    text = f"dokimos {__version__}, Python {sys.version.split()[0]}\n{command}\n\n{trace}"
    for folder in (home() / "faults", Path(tempfile.gettempdir())):
        name = f"dokimos-fault-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06}.txt"
        with contextlib.suppress(InputError, OSError, RuntimeError):
            write_whole(folder / name, text.encode(errors="backslashreplace"))
            return f"its trace is kept in {folder / name}"
    return "its trace could not be kept anywhere"
