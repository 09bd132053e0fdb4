"""The traceback of a bug in Dokimos: kept in a file, not printed."""

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
    """Write the traceback to Dokimos' home, or to the temporary folder; return a phrase that says where."""
    trace = "".join(traceback.format_exception(error))
    command = shlex.join(sys.argv)
    text = f"dokimos {__version__}, Python {sys.version.split()[0]}\n{command}\n\n{trace}"
    for folder in (home() / "faults", Path(tempfile.gettempdir())):
        name = f"dokimos-fault-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**6:06}.txt"
        with contextlib.suppress(InputError, OSError, RuntimeError):
            write_whole(folder / name, text.encode(errors="backslashreplace"))
            return f"its traceback is in {folder / name}"
    return "its traceback could not be written to any file"
