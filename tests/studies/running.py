"""Runs `dokimos-studies` in the test's own process."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from dokimos_studies.__main__ import run


@dataclass(frozen=True)
class Ended:
    """The exit code of a command, and what it said."""

    code: object
    out: str
    err: str


def studies(*words: object) -> Ended:
    """`dokimos-studies WORDS`."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["dokimos-studies", *map(str, words)])
        patch.setenv("OPENBLAS_NUM_THREADS", "1")
        with pytest.raises(SystemExit) as end:
            run()
    return Ended(end.value.code, out.getvalue(), err.getvalue())
