"""One process at a time makes a suite; what cannot be written is named."""

from __future__ import annotations

import errno
import logging
import os
import threading
from pathlib import Path

import pytest

from dokimos.constructions import generation
from dokimos.constructions.generation import GeneratedInstance, generate_suite, shipped_suite
from dokimos.constructions.recipes import Recipe, parse_recipe
from dokimos.core.errors import InputError

ONE = """
about = "one"
seed = 5
timeout_seconds = 3
[[draw]]
family = "exclusive-pairs"
knobs = {{ inputs = 20, pairs = {} }}
"""


def one(pairs: int = 2) -> Recipe:
    return parse_recipe(ONE.format(pairs), file="one.toml")


@pytest.mark.parametrize("pairs", [2, 3])
def test_two_do_not_generate_into_one_folder(tmp_path: Path, pairs: int) -> None:
    """Neither the same recipe nor another one."""
    out = tmp_path / "suite"

    def other(_: GeneratedInstance) -> None:
        with pytest.raises(
            InputError, match=rf"Another process \(process {os.getpid()}\) generates {out};"
        ):
            generate_suite(one(pairs), out, jobs=1)

    generate_suite(one(), out, jobs=1, progress=other)
    assert [path.name for path in tmp_path.iterdir()] == ["suite"]


def test_whoever_comes_second_to_a_shipped_suite_finds_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(generation, "shipped_recipe", lambda _: one())
    caplog.set_level(logging.INFO, logger="dokimos")
    made: list[GeneratedInstance] = []
    waits = threading.Event()
    monkeypatch.setattr(generation._log, "info", lambda *_: waits.set())
    second = threading.Thread(target=lambda: shipped_suite("quick", progress=made.append))

    def first(_: GeneratedInstance) -> None:
        if not second.is_alive() and not waits.is_set():
            second.start()
            assert waits.wait(60)

    suite = shipped_suite("quick", progress=first)
    second.join()
    assert len(suite.entries) == 2 and made == []


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("dokimos.core.files.os.write", full)
        with pytest.raises(InputError, match=r"\.onnx: the network cannot be written \(No space left"):
            generate_suite(one(), tmp_path / "suite", jobs=1)
    generate_suite(one(), tmp_path / "suite", jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["suite"]


def test_a_half_made_suite_with_links_is_not_written_into(tmp_path: Path) -> None:
    def stop(_: GeneratedInstance) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_suite(one(), tmp_path / "suite", jobs=1, progress=stop)
    [half] = tmp_path.glob(".suite.*.part")
    (half / "truth" / "other").symlink_to(tmp_path)
    with pytest.raises(InputError, match="contains links"):
        generate_suite(one(), tmp_path / "suite", jobs=1)
