"""What the catalogue knows of verifiers by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.verifiers.base import CertificateStyle
from dokimos.verifiers.catalogue import VERIFIERS, styles_of

OTHER = (CertificateStyle.OTHER,)


def test_every_verifier_that_proves_something_by_itself_has_a_style() -> None:
    assert {name for name in VERIFIERS.shipped if VERIFIERS[name].styles == OTHER} == {
        "planted",
        "scripted",
        "vnncomp",
        "vnnlib2",
    }
    nnenum = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
    assert styles_of("nnenum=/opt/nnenum") == styles_of("nnenum=/opt/nnenum:no-attack") == nnenum
    assert styles_of("vibecheck:no-attack") == (CertificateStyle.DUAL, CertificateStyle.PARTITION)
    assert styles_of("vnncomp=/opt/x") == OTHER


def test_a_record_never_makes_us_import_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert styles_of("trap:Mine=/opt/x:no-attack") == OTHER
    assert styles_of("nobody knows it") == OTHER
