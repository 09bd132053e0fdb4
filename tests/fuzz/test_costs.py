"""No reader takes more than n·log n for a file that grows in one respect."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.campaigns.journal import Journal, SetAside, event_line, read_history
from dokimos.core.documents import _HEADER
from dokimos.core.errors import UnreadableFile
from dokimos.core.tables import arrays_in
from dokimos.judging.audit.file_rules import _INFIX
from dokimos.laws.domain.data_frames import _REAL
from dokimos.suites.folder import _NAMED_NETWORKS
from tests.campaigns.test_journal import numbered
from tests.fuzz import costs
from tests.fuzz.costs import CHEAP_SECONDS, Growth, cost, fault, faults
from tests.fuzz.named_inputs import archive
from tests.fuzz.readers import READERS

#: The default run tries one in so many ways to grow, with files of some kilobytes.
SHARE, FEW = 9, 1024


@pytest.mark.parametrize("reader", sorted(READERS))
def test_no_reader_is_superlinear_in_a_few_respects(reader: str) -> None:
    assert list(faults([reader], FEW, share=SHARE)) == []


@pytest.mark.slow
@pytest.mark.parametrize("reader", sorted(READERS))
def test_no_reader_is_superlinear(reader: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz.costs", "8192", reader]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_quadratic_growth_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among them expressions that readers once had; small files show it where no cost counts as cheap."""
    once = {
        r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?": ("", "1", "x"),
        r"\[(?:\s*,\s*a)*\s*,?\s*\]": ("[", " ", "x"),
    }
    for pattern, (before, part, after) in once.items():
        growth = Growth(
            part,
            lambda count, b=before, p=part, a=after: (b + p * count + a).encode(),  # type: ignore[misc]
        )
        with monkeypatch.context() as patched:
            patched.setattr(costs, "CHEAP_SECONDS", 0.01)
            found = fault(
                growth, lambda path, _, pattern=pattern: re.fullmatch(pattern, path.read_text()), "x", 4000
            )
        assert found is not None
        assert "CPU-seconds" in found
    sort = Growth("lines", lambda count: b"\n".join(b"%d" % (k * 7919 % count) for k in range(count)))
    assert fault(sort, lambda path, _: sorted(path.read_text().split()), "x", 100_000) is None


@pytest.mark.parametrize(
    ("search", "before", "part", "after"),
    [
        (_REAL.fullmatch, "", "1", "x"),
        (_NAMED_NETWORKS.fullmatch, "[('a', 'b')", " ", "x"),
        (_INFIX.search, "", "(a[", ""),
        (_HEADER.match, "[", " ", "x"),
    ],
)
def test_an_expression_is_linear(
    search: Callable[[str], object], before: str, part: str, after: str
) -> None:
    growth = Growth(part, lambda count: (before + part * count + after).encode())
    assert fault(growth, lambda path, _: search(path.read_text()), "x", 25_000) is None


def test_quadratic_memory_is_found() -> None:
    def square(path: Path, _: int) -> None:
        bytearray(path.stat().st_size ** 2)[:: 1 << 12]

    def line(path: Path, _: int) -> None:
        bytearray(100 * path.stat().st_size)[:: 1 << 12]

    growth = Growth("bytes", lambda count: bytes(count))
    found = fault(growth, square, "x", 4096)
    assert found is not None and "MB of memory" in found
    assert fault(growth, line, "x", 1 << 18) is None


def test_many_runs_set_aside_cost_little(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.finish_all(numbered(k) for k in range(4000))
    aside = b"".join(event_line(SetAside(str(k), "again", "now")) for k in range(4000))
    content = (tmp_path / "journal.jsonl").read_bytes() + aside
    assert (
        cost(lambda path, _: read_history(path), "journal.jsonl", content, 0).seconds < 16 * CHEAP_SECONDS
    )
    (tmp_path / "journal.jsonl").write_bytes(content)
    history = read_history(tmp_path / "journal.jsonl")
    assert (history.records, history.finished_since) == ((), ())


def test_a_small_archive_does_not_become_a_large_array() -> None:
    packed = archive(x=bytes(1 << 27), y=b"")
    assert len(packed) < 1 << 20
    with pytest.raises(UnreadableFile, match="decompress to more than 67108864 bytes"):
        arrays_in(packed, [("x",)], file="data.npz")
