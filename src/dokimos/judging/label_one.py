"""Labels an instance: `python -m dokimos.judging.label_one RESULT SECONDS NAME NETWORK PROPERTY [OPEN]`.

Writes what is known to RESULT after each stage, so that findings survive if the process is killed. OPEN is
the record of an earlier search, which goes on from there; what a search has found is recorded there now and
then. It can also label one after another (see `warm_queries.py`).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from dokimos import __version__
from dokimos.core.errors import InputError, UnreadableFile, UnsupportedOp
from dokimos.core.files import write_whole
from dokimos.core.parallel import keep_freed_memory
from dokimos.core.strict_json import read, write
from dokimos.engine.label import LabelFinding, find_label
from dokimos.engine.open_cover import KEPT, OpenCover
from dokimos.judging.checked_entry import fault
from dokimos.suites.entry import exists, read_content, read_text
from dokimos.suites.instance import Instance
from dokimos.suites.suite_files import dump_truth
from dokimos.verifiers.runners.warm_queries import serve

_ENDED_EARLY = "the search ended early"


@dataclass(frozen=True)
class OpenForm:
    """The record of an instance that stays open: the files and the version that it is about, the budget,
    and the findings. `search` is what the next search goes on from.
    """

    network_sha256: str
    property_sha256: str
    dokimos: str
    budget_seconds: float
    reason: str
    nearest: float | None
    bound: float | None
    search: OpenCover | None = None


def read_open_form(path: Path) -> OpenForm:
    """Read the record of an open instance. Raises UnreadableFile."""
    return read(read_text(path), OpenForm, file=path, what="a record of an open instance")


@dataclass(frozen=True)
class ProcessFinding:
    """A finding as it is passed between processes: `truth` is the text of a truth file, empty if there is
    no label.

    `is_over` says whether the search finished; `is_unreadable` whether a file cannot be read; `is_fault`
    whether a fault of Dokimos ended it.
    """

    truth: str = ""
    by: str = ""
    reason: str = ""
    nearest: float | None = None
    bound: float | None = None
    search: OpenCover | None = None
    is_over: bool = False
    is_unreadable: bool = False
    is_fault: bool = False


def main(
    result: str,
    seconds: str,
    name: str,
    network: str,
    property_: str,
    earlier: str = "",
    *,
    begun: float | None = None,
) -> None:
    """Search, and write what is known after each stage. The CPU time counts from `begun`, or from now."""
    place, known, begun = Path(result), ProcessFinding(), time.process_time() if begun is None else begun
    form: OpenForm | None = None

    def keep(so_far: LabelFinding) -> None:
        nonlocal known
        known = _written(so_far, is_over=False)
        if form is not None and known.search is not None:
            spent = form.budget_seconds + time.process_time() - begun
            now = replace(form, budget_seconds=spent, reason=_ENDED_EARLY, search=known.search)
            write_whole(Path(earlier), write(now), what="the record of an open instance")
        write_whole(place, write(replace(known, search=None)))

    try:
        instance = Instance(name, read_content(Path(network)), read_content(Path(property_)))
        if earlier:
            hashes = instance.network_sha256, instance.property_sha256
            form = OpenForm(*hashes, __version__, 0.0, "", None, None)
            if exists(Path(earlier)):
                form = read_open_form(Path(earlier))
        kept = None if form is None else form.search
        left = float(seconds) - (time.process_time() - begun)
        found = find_label(instance, seconds=left, so_far=keep, kept=kept)
        finding = _written(found, is_over=True)
    except UnsupportedOp as error:
        finding = ProcessFinding(reason=str(error), is_over=True)
    except InputError as error:
        reason = str(error)
        if isinstance(error, UnreadableFile) and error.place.file == KEPT:
            reason = f"{earlier}: {reason}; remove the file to search anew"
        finding = ProcessFinding(reason=reason, is_over=True, is_unreadable=True)
    except Exception as error:  # a bug, of which the caller tells; what had been found stays
        finding = replace(known, reason=fault(error), is_fault=True)
    write_whole(place, write(finding))


def _written(found: LabelFinding, *, is_over: bool) -> ProcessFinding:
    origin = {"labelled_by": found.by}
    truth = "" if found.truth is None else dump_truth(found.truth, origin=origin)
    return ProcessFinding(truth, found.by, found.reason, found.nearest, found.bound, found.search, is_over)


if __name__ == "__main__":
    keep_freed_memory()
    begins = chain((0.0,), iter(time.process_time, None))  # the first question pays for the start
    serve(lambda: main(*sys.argv[1:], begun=next(begins)))
