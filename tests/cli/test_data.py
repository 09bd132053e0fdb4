from __future__ import annotations

from tests.cli.conftest import Dokimos


def test_data_sets_are_listed_and_fetched(dokimos: Dokimos) -> None:
    listed = dokimos("data")
    assert listed.code == 0
    assert all(name in listed.out for name in ("mnist", "cifar10", "digits", "german", "compas"))
    got = dokimos("data", "get", "digits")
    assert got.code == 0 and "1,198 records to train on, 599 to test on" in got.out
    unknown = dokimos("data", "get", "digit")
    assert unknown.code == 2 and "did you mean 'digits'?" in unknown.err
