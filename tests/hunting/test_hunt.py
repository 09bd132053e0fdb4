"""Hunts: proven draws, what is drawn next, a journal that continues, and a folder that is a suite."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.campaigns.settings import RunSettings
from dokimos.checker.check import check
from dokimos.core.errors import UnreadableFile
from dokimos.engine.runtimes.sessions import replay
from dokimos.hunting.file_graph import NoChange
from dokimos.hunting.proven_draws import (
    COMPOSED,
    MUTATION,
    RANDOM,
    RANDOM_NETWORK,
    Bandit,
    DrawKind,
    Harvest,
    draw,
    joined,
    kinds,
)
from dokimos.hunting.reduction import tool_name
from dokimos.hunting.rounds import Hunt, HuntSettings, HuntState, _forms, _read_finding, read_known
from dokimos.hunting.write_up import FindingForm
from dokimos.suites.folder import read_suite
from dokimos.verifiers.catalogue import find

FORM = FindingForm(
    name="a",
    tool="tool",
    version="1",
    wrong="wrong-unsat",
    needed=("Relu",),
    operators=("Relu",),
    margin_size=-2,
    attack_off=False,
    node="",
    margin="1",
    numbers=3,
    before=9,
    asked=5,
    cpu_seconds=1.0,
    answer="unsat",
    own_answer="",
    agrees=True,
)


def rng(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("shape", ["dense", "scaled", "pooled", "residual"])
def test_every_draw_is_proven(shape: str) -> None:
    found = [one for seed in range(3) for one in draw(DrawKind(RANDOM_NETWORK, shape), rng(seed), ())]
    assert found
    for one in found:
        assert one.truth is not None
        check(one.instance, one.truth)


@pytest.mark.parametrize("way", ["into", "beside", "around"])
def test_two_networks_as_one_compute_what_both_compute(way: str) -> None:
    drawn = rng(5)
    first, second = (RANDOM["dense"](drawn).graph().folded().tidied() for _ in range(2))
    graph = joined(way, first, second, drawn)
    assert {node.op for node in first.nodes} | {node.op for node in second.nodes} <= set(graph.operators)
    found = [one for seed in range(3) for one in draw(DrawKind(COMPOSED, way), rng(seed), ())]
    assert found
    for one in found:
        assert one.truth is not None
        check(one.instance, one.truth)
    if way == "beside":
        point = drawn.random((1, graph.input_size)).astype(np.float32)
        parts = np.split(point, [first.input_size], axis=1)
        alone = [replay(each.write(), x)[0] for each, x in zip((first, second), parts, strict=True)]
        assert np.allclose(replay(graph.write(), point)[0], np.concatenate(alone))


def test_networks_of_other_opsets_are_not_joined() -> None:
    first, second = (RANDOM["dense"](rng(seed)).graph() for seed in (1, 2))
    with pytest.raises(NoChange, match="other versions"):
        joined("into", first, replace(second, opset=12), rng(3))


def test_a_round_has_as_many_draws_as_answers_are_quick(tmp_path: Path) -> None:
    asked = Hunt([], out=tmp_path, settings=RunSettings(), hunting=HuntSettings())
    counts = []
    for draws, seconds in ((0, 0.0), (24, 24.0), (24, 240.0), (24, 2400.0)):
        asked.state = HuntState(draws=draws, cpu_seconds=seconds)
        counts.append(asked._draws)
    assert counts == [8, 24, 9, 4]


def test_families_are_drawn_with_random_knobs_and_disguises() -> None:
    kind = DrawKind("specs", "two-ors")
    found = [one.instance for seed in range(4) for one in draw(kind, rng(seed), ())]
    assert {instance.parameters["shape"] for instance in found} == {"two-ors"}
    assert {"exclusive-pairs", "scale"} <= {each.family for each in kinds()}


def test_the_same_seed_draws_the_same() -> None:
    kind = DrawKind(RANDOM_NETWORK, "dense")
    names = [[one.instance.name for one in draw(kind, rng(7), ())] for _ in range(2)]
    assert names[0] == names[1]


def test_networks_of_the_user_are_mutated(tmp_path: Path, copy_of_tiny: Callable[[Path], Path]) -> None:
    entries = read_suite(copy_of_tiny(tmp_path / "suite")).entries
    kind = DrawKind(MUTATION, entries[0].name)
    assert kind in kinds(entries)
    found = [one for seed in range(4) for one in draw(kind, rng(seed), entries)]
    assert found
    originals = {entry.network_sha256 for entry in entries}
    assert any(one.instance.network_sha256 not in originals for one in found)


def test_a_draw_that_comes_to_nothing_is_none() -> None:
    assert draw(DrawKind("no-such-family"), rng(0), ()) == []


def test_new_causes_are_worth_more_than_repeats() -> None:
    plain = Harvest(draws=10, instances=20, told=10, cpu_seconds=1)
    assert replace(plain, new=1, wrong=1).weight > plain.weight
    assert replace(plain, new=1, wrong=30).weight < replace(plain, new=1, wrong=1).weight
    assert replace(plain, cpu_seconds=50).weight < plain.weight
    assert replace(plain, told=0).weight < plain.weight


def test_what_finds_is_drawn_more_often_and_nothing_never() -> None:
    known = [DrawKind("a"), DrawKind("b"), DrawKind("c", "x"), DrawKind("c", "y")]
    bandit = Bandit(known)
    bandit.tally("a").add(Harvest(draws=20, instances=40, told=20, wrong=3, new=3, cpu_seconds=2))
    bandit.tally("b").add(Harvest(draws=20, instances=40, told=0, cpu_seconds=2))
    generator = rng(1)
    names = [bandit.choose(generator).name for _ in range(400)]
    assert names.count("a") > 2 * names.count("b")
    assert set(names) == {"a", "b", "c/x", "c/y"}


def test_findings_of_one_cause_are_one() -> None:
    state = HuntState(findings=[FORM, replace_form(name="b", numbers=2), replace_form(needed=("Conv",))])
    assert [[each.name for each in own] for own in state.causes.values()] == [["b", "a"], ["a"]]
    assert tool_name("vibecheck:warm:no-attack") == "vibecheck"


def replace_form(**changes: object) -> FindingForm:
    return FindingForm(**{**{name: getattr(FORM, name) for name in FORM.__struct_fields__}, **changes})


def hunt(
    folder: Path, *, rounds: int, bug: str = "attacking-relu-intercept", **settings: float
) -> HuntState:
    hunting = HuntSettings(rounds=rounds, draws=2, **settings)  # type: ignore[arg-type]
    limits = RunSettings(timeout_seconds=20, cpu_seconds=5)
    return Hunt([find(f"planted={bug}")], out=folder, settings=limits, hunting=hunting).run()


@pytest.mark.slow
def test_a_hunt_continues_where_it_stopped(tmp_path: Path) -> None:
    once = hunt(tmp_path / "once", rounds=2, reduction_seconds=0)
    hunt(tmp_path / "twice", rounds=1, reduction_seconds=0)
    journal = tmp_path / "twice" / "hunt.jsonl"
    journal.write_text(journal.read_text() + '{"round": 1, "ki')  # killed while it wrote
    twice = hunt(tmp_path / "twice", rounds=2, reduction_seconds=0)
    assert (once.instances, once.told, once.wrong) == (twice.instances, twice.told, twice.wrong)
    assert [json.loads(line)["round"] for line in journal.read_text().splitlines()] == [0, 1]
    assert not (tmp_path / "once" / "round").exists()


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    for text in ("no JSON\n", "[" * 100_000 + "\n", "[]\n", '{"seconds": 1, "times": []}\n'):
        (tmp_path / "hunt.jsonl").write_text(text)
        with pytest.raises(UnreadableFile, match="line 1"):
            hunt(tmp_path, rounds=1)


def test_known_causes_are_read(tmp_path: Path) -> None:
    listed = tmp_path / "known.txt"
    listed.write_text(f"# ours\n{FORM.cause.key}\n\n")
    assert read_known(listed) == [FORM.cause.key]
    assert read_known(tmp_path) == []
    with pytest.raises(UnreadableFile, match="no such file"):
        read_known(tmp_path / "nowhere")


@pytest.mark.slow
def test_what_is_still_large_is_made_smaller_later(tmp_path: Path) -> None:
    """A first round with no time for reductions leaves it as it is, the next one goes on."""
    first = hunt(tmp_path, rounds=1, bug="always-unsat", reduction_seconds=1e-9)
    large = {one.name: one for one in first.findings}
    assert large and all(one.numbers == one.before > 8 for one in large.values())
    limits, hunting = RunSettings(timeout_seconds=20, cpu_seconds=5), HuntSettings(reduction_seconds=20)
    again = Hunt([find("planted=always-unsat")], out=tmp_path, settings=limits, hunting=hunting)
    again._read()
    line: dict[str, Any] = {"tried": [], "tools": 0.0}
    again._made_smaller(line)
    (name,) = line["tried"]
    (after,) = (one for one in again.state.findings if one.name not in large)
    assert after.origin == large[name].origin
    assert after.numbers < after.before == large[name].before
    assert name not in {one.name for one in again.state.findings}
    assert after.name in {one.name for one in map(_read_finding, _forms(tmp_path))}
