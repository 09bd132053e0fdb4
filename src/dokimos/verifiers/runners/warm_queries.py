"""Lets the main function of a runner answer one query after another. Imports only the standard library.

RUNNER ARGUMENTS
RUNNER --queries QUERIES REPLIES

QUERIES is a named pipe with lines of JSON: the number of a query, what its ARGUMENTS would have been, and
the folder to work in. REPLIES gets a line for each: its number, and the exit code that a separate process
would have had; and `forked`, if a fork answered it. It ends after the last query, when no process has
QUERIES open for writing.

A runner that loads much hands over a function that loads it. That is called once, and each query gets a
fork of the process in which it was: nothing of one query reaches the next, and a crash ends the fork alone.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # neither from `typing`, nor paths from `pathlib`: what runs once starts without
if TYPE_CHECKING:
    from collections.abc import Callable

WORD = "--queries"


def serve(main: Callable[[], None], load: Callable[[], None] | None = None) -> None:
    """Call `main` once, or for each query; it takes its arguments from `sys.argv`.

    With `load`, that is called before the first query, and each query is answered by a fork.
    """
    if sys.argv[1:2] != [WORD]:
        main()
        return
    import json
    from pathlib import Path

    queries, replies = sys.argv[2:]
    home = Path.cwd()
    if load is not None:
        load()
    with Path(queries).open(encoding="utf-8") as asked, Path(replies).open("w", encoding="ascii") as told:
        for line in asked:
            query = json.loads(line)
            sys.argv[1:] = query["arguments"]
            work_in(query["folder"])
            code = exit_code(main) if load is None else exit_code_of_fork(main)
            work_in(str(home))
            sys.stdout.flush()
            sys.stderr.flush()
            told.write(f"{query['number']} {code}{'' if load is None else ' forked'}\n")
            told.flush()


def work_in(folder: str) -> None:
    """Make a folder the current one, and the one for temporary files."""
    os.chdir(folder)
    os.environ["TMPDIR"] = folder
    if "tempfile" in sys.modules:
        import tempfile

        tempfile.tempdir = None


def exit_code_of_fork(main: Callable[[], None]) -> int:
    """The exit code of a fork of this process that only calls `main`; 128 and more for a signal."""
    child = os.fork()
    if child == 0:
        from contextlib import suppress

        code = exit_code(main)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def exit_code(main: Callable[[], None]) -> int:
    """The exit code that a process that only calls `main` would have."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        import traceback  # here and above: what runs once starts sooner without these modules

        traceback.print_exc()
        return 1
    return 0
