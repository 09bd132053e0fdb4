"""Fuzzing: pools of records that differ, from any domain that can be walked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws import real
from dokimos.laws.domain.definition import load_domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.engine.pools import fuzz, pool_file
from tests.cli.test_law import run as cli

LAYOUT = Layout([real("a", 0, 1), real("b", -1, 1), real("free")])


def start(rng: np.random.Generator) -> Any:
    return np.array([0.5, 0.0, 9.0])


def walk(record: Any, rng: np.random.Generator, predict: Any) -> list[Any]:
    steps = rng.normal(scale=0.2, size=(5, 3)).cumsum(axis=0)
    return list(record + steps * predict(record[None])[0])


def one(records: Any) -> Any:
    return np.ones(len(records))


def test_a_pool_is_diverse_in_range_and_seeded() -> None:
    pool = fuzz(start, walk, one, LAYOUT, size=60, seed=3)
    assert pool.shape == (60, 3) and len(np.unique(pool, axis=0)) == 60
    assert (pool[:, 0] >= 0).all() and (pool[:, 0] <= 1).all() and (np.abs(pool[:, 1]) <= 1).all()
    scaled = pool[:, :2] / [1, 2]
    gaps = np.linalg.norm(scaled[:, None] - scaled, axis=2) + np.eye(60)
    near_at_random = np.random.default_rng(0).random((60, 2))
    random_gaps = np.linalg.norm(near_at_random[:, None] - near_at_random, axis=2) + np.eye(60)
    assert gaps.min() > random_gaps.min()
    assert (pool == fuzz(start, walk, one, LAYOUT, size=60, seed=3)).all()
    assert (pool != fuzz(start, walk, one, LAYOUT, size=60, seed=4)).any()


def test_the_model_takes_part() -> None:
    still = fuzz(start, walk, lambda records: np.zeros(len(records)), LAYOUT, size=5)
    assert still.tolist() == [[0.5, 0.0, 9.0]]  # nothing new is ever found: it ends with what there is


def test_an_interruption_keeps_what_was_found() -> None:
    walks = 0

    def interrupted(record: Any, rng: np.random.Generator, predict: Any) -> list[Any]:
        nonlocal walks
        walks += 1
        if walks == 4:
            raise KeyboardInterrupt
        return walk(record, rng, predict)

    seen: list[int] = []
    pool = fuzz(start, interrupted, one, LAYOUT, size=500, progress=seen.append, until_interrupted=True)
    assert 1 <= len(pool) < 500 and seen == sorted(seen)
    walks = 0
    with pytest.raises(KeyboardInterrupt):  # a pool that is kept by its size is never shorter
        fuzz(start, interrupted, one, LAYOUT, size=500)

    def at_once(rng: np.random.Generator) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fuzz(at_once, walk, one, LAYOUT, size=5, until_interrupted=True)


def test_what_cannot_be_fuzzed() -> None:
    with pytest.raises(InputError, match="feature with a range"):
        fuzz(start, walk, one, Layout([real("a")]), size=5)
    outside = lambda rng: np.array([7.0, 0.0, 0.0])  # noqa: E731
    with pytest.raises(InputError, match="found no records"):
        fuzz(outside, lambda record, rng, predict: [], one, LAYOUT, size=5)


def test_pools_are_files_that_laws_read(tmp_path: Path) -> None:
    records = np.array([[0.1, 2.0]])
    assert json.loads(pool_file(records, ".json")) == [[0.1, 2.0]]
    (tmp_path / "pool.npy").write_bytes(pool_file(records, ".npy"))
    assert (np.load(tmp_path / "pool.npy") == records).all()


DOMAIN = """
import numpy as np
from dokimos.laws import real

FEATURES = [real("a", 0, 1)]

def model():
    return lambda record: int(record[0] > 0.5)

def start(rng):
    return np.array([rng.random()])

def walk(record, rng, predict):
    return [(record + rng.random()) % 1 if predict(record[None])[0] else record / 2]
"""
LAW = "input x; output d; { d = predict(x) } ensures d == 0 || x.a > 0.4;"


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_the_command(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "game.py").write_text(DOMAIN)
    (tmp_path / "a.law").write_text("import game; " + LAW)
    pool = tmp_path / f"pool{suffix}"
    done = cli("fuzz", tmp_path / "game.py", "--size", 20, "--out", pool)
    assert done.exit_code == 0 and "20 records" in done.stdout and f"pool:{pool}" in done.stdout
    tested = cli("test", tmp_path / "a.law", "--source", f"pool:{pool}")
    assert tested.exit_code == 0 and "source pool" in tested.stdout


def test_the_command_refuses(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(DOMAIN)
    (tmp_path / "nothing.py").write_text("FEATURES = ['a']\n")
    for arguments, message in [
        ((tmp_path / "game.py", "--out", tmp_path / "pool.txt"), r"ends in \.npy or \.json"),
        ((tmp_path / "nothing.py", "--out", tmp_path / "pool.npy"), "cannot be fuzzed"),
        (("compas", "--out", tmp_path / "pool.npy"), "cannot be fuzzed"),
        ((tmp_path / "game.py", "--out", tmp_path / "game.py" / "pool.npy"), "cannot be written"),
    ]:
        with pytest.raises(InputError, match=message):
            raise cli("fuzz", *arguments).exception or AssertionError
    (tmp_path / "game.py").write_text(DOMAIN.replace("def model", "def other"))
    with pytest.raises(InputError, match="Give a model"):
        raise cli("fuzz", tmp_path / "game.py", "--out", tmp_path / "p.npy").exception or AssertionError


@pytest.mark.no_cover
def test_functions_that_run_the_model_belong_into_the_block(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(
        DOMAIN + "\ndef play(x, predict):\n    return int(predict(x[None])[0])\n"
    )
    assert load_domain(str(tmp_path / "game.py")).functions["play"].takes_model
    (tmp_path / "pool.json").write_text("[[0.1], [0.7]]")
    source = ("--source", f"pool:{tmp_path / 'pool.json'}")
    inside = "import game; input x; output d; { d = play(x) + 0 } ensures d == 0 || x.a > 0.4;"
    (tmp_path / "inside.law").write_text(inside)
    assert cli("test", tmp_path / "inside.law", *source).exit_code == 0
    outside = "import game; input x; var v := play(x); output d; { d = predict(x) } ensures d == v;"
    (tmp_path / "outside.law").write_text(outside)
    with pytest.raises(InputError, match="call it in the block"):
        raise cli("test", tmp_path / "outside.law", *source).exception or AssertionError
