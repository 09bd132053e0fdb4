"""Mutants that are led by what they reach: `python -m tests.fuzz.guided READER RUNS FOLDER`.

atheris follows which lines of Dokimos each file reaches, and changes those further that reach new ones. It
starts from the reader's own files and from what an earlier call left in FOLDER, where it leaves what it
finds; so it goes on where it stopped. A file that a reader cannot cope with ends it, and is written to
FOLDER, too.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dokimos"]):
    from tests.fuzz.readers import READERS
    from tests.fuzz.worker import CPU_SECONDS, MEMORY_BYTES, Case, try_out


def main(name: str, runs: int, folder: Path) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    reader, kept = READERS[name], folder / name
    kept.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(reader.seeds()):
        (kept / f"seed-{number}").write_bytes(seed)

    def read(content: bytes) -> None:
        place = Path(tempfile.mkdtemp(prefix="dokimos-fuzz-"))
        try:
            if problem := try_out(Case(reader, name, content), place):
                raise RuntimeError(problem)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    limits = [f"-timeout={CPU_SECONDS * 4}", f"-rss_limit_mb={MEMORY_BYTES >> 20}", f"-runs={runs}"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={folder}/{name}-", str(kept)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
