"""Whatever a file holds, a reader gives what it means or one of our errors, within 5 CPU-seconds and 2 GB.

The readers and the files to start from are in `readers.py`, the changes in `mutators.py`; `named_inputs.py`
has files that were once too much. All of it runs in processes of its own, whose limits the system enforces.
What the checker accepts of a mutant is held against exact values.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.core.inputs import uncompressed
from dokimos.networks.reading.onnx_file import read_onnx
from tests.fuzz.fuzzing import Fault, fuzz
from tests.fuzz.named_inputs import networks
from tests.fuzz.readers import READERS

#: The default run reads so few mutants for each reader, and always the same ones.
FEW = 8
MANY = 10_000


def in_words(faults: list[Fault]) -> str:
    return f"{len(faults)} faults, such as:\n" + "\n".join(map(str, faults[:3]))


@pytest.fixture(scope="module")
def default_run() -> tuple[list[str], list[Fault]]:
    """What the default run reads and the faults: one process, as the files to start from take time."""
    return fuzz(list(READERS), seed="named,few", count=FEW)


def test_files_that_were_once_too_much_are_read_or_refused(
    default_run: tuple[list[str], list[Fault]],
) -> None:
    read, faults = default_run
    assert len([case for case in read if not _is_mutant(case)]) > 100
    own = [fault for fault in faults if not _is_mutant(fault.case)]
    assert not own, in_words(own)


def test_no_reader_fails_on_a_few_mutants(default_run: tuple[list[str], list[Fault]]) -> None:
    read, faults = default_run
    assert len([case for case in read if _is_mutant(case)]) == FEW * len(READERS)
    own = [fault for fault in faults if _is_mutant(fault.case)]
    assert not own, in_words(own)


def _is_mutant(case: str) -> bool:
    return ": mutant " in case


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_fails_on_many_mutants(reader: str) -> None:
    read, faults = fuzz([reader], seed="many", count=MANY)
    assert len(read) == MANY
    assert not faults, in_words(faults)


@pytest.mark.parametrize(("title", "content"), networks().items())
def test_small_networks_that_ask_for_much_are_refused_for_that(title: str, content: bytes | Path) -> None:
    if isinstance(content, bytes):
        with pytest.raises(InputError, match=r"too large|axes, more than|is not an ONNX file"):
            read_onnx(uncompressed(content, file=title))
