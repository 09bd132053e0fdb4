"""The command line, each command in a process that need not load everything anew (`fork_server.py`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

SERVER = Path(__file__).with_name("fork_server.py")


class Forks:
    """Runs commands in a folder, by an interpreter and in an environment that are the same for all of them.

    What they load is what there is at the first one.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *, python: Path = Path(sys.executable)
    ) -> None:
        self._start = [str(python), str(SERVER)]
        self._folder, self._environment = folder, environment
        self._server: subprocess.Popen[str] | None = None

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """What `dokimos` with these words printed, and its exit code."""
        if self._server is None:
            self._server = subprocess.Popen(
                self._start,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self._folder,
                env=dict(self._environment),
            )
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("out", "err")]
            command = [str(word) for word in words]
            self._server.stdin.write(json.dumps([command, *map(str, files)]) + os.linesep)
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            out, err = (file.read_text(encoding="utf-8") for file in files)
        return subprocess.CompletedProcess(command, code, out, err)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            with self._server:  # closes its input, and waits
                pass
