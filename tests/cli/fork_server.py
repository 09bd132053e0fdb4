"""Runs commands of `dokimos`, each in a fork of this process, which has loaded what most of them need.

Standard input has a line of JSON for each: its words, and the files for what it prints on either stream.
The answer is its exit code. `forks.py` is the other side; this one runs in any interpreter that has
Dokimos.
"""

from __future__ import annotations

import json
import os
import sys


def load() -> None:
    """What takes most of the time to start."""
    import flint  # noqa: F401
    import msgspec  # noqa: F401
    import onnx  # noqa: F401
    import rich.table  # noqa: F401

    import dokimos.cli.app  # noqa: F401


def become(words: list[str], *files: str) -> None:
    """Be the process of one command; it ends as its own would."""
    from dokimos.cli import main

    for stream, file in enumerate((os.devnull, *files)):
        opened = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, stream)
        os.close(opened)
    sys.argv = ["dokimos", *words]
    main()


def serve() -> None:
    """Fork until the input ends."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    load()
    serve()
