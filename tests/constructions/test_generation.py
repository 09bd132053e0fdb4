from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path

import pytest

from dokimos.constructions.generation import GeneratedInstance, generate_suite, shipped_suite
from dokimos.constructions.recipes import Recipe, parse_recipe, with_seeds
from dokimos.core.errors import InputError, UnreadableFile, UnsupportedOp
from dokimos.core.files import code_key
from dokimos.suites.folder import cached_folder, find_suite

TINY = """
about = "tiny"
seed = 5
timeout_seconds = 3
[[draw]]
family = "exclusive-pairs"
count = 2
knobs = { inputs = 20, pairs = 2 }
"""


def tiny(text: str = TINY) -> Recipe:
    return parse_recipe(text, file="tiny.toml")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def test_a_recipe_gives_the_same_files_in_one_process_and_in_two(tmp_path: Path) -> None:
    first = generate_suite(tiny(), tmp_path / "a", jobs=1)
    generate_suite(tiny(), tmp_path / "b", jobs=2)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    truths = [entry.read_truth() for entry in first.entries]
    assert sorted(t.label.value for t in truths if t) == ["sat", "sat", "unsat", "unsat"]
    assert {entry.timeout_seconds for entry in first.entries} == {3}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_the_order_says_nothing_about_the_label(tmp_path: Path) -> None:
    suite = generate_suite(tiny(TINY.replace("count = 2", "count = 8")), tmp_path / "suite", jobs=1)
    truths = [entry.read_truth() for entry in suite.entries]
    labels = [t.label.value for t in truths if t]
    assert labels not in (["unsat", "sat"] * 8, ["sat", "unsat"] * 8)
    assert labels != sorted(labels)


def test_a_disguise_is_part_of_a_recipe(tmp_path: Path) -> None:
    suite = generate_suite(tiny(TINY + 'disguise = ["permute"]'), tmp_path / "suite", jobs=1)
    kinds = {t.certificate.kind for e in suite.entries if (t := e.read_truth())}
    assert kinds == {"rewritten", "witness"}


def test_twins_can_be_left_out(tmp_path: Path) -> None:
    suite = generate_suite(tiny(TINY + 'labels = ["unsat"]'), tmp_path / "suite", jobs=1)
    assert [t.label.value for e in suite.entries if (t := e.read_truth())] == ["unsat", "unsat"]


SHARED = """
[[draw]]
family = "exact-radius"
labels = ["unsat"]
seed = 9
knobs = { inputs = 6, width = 3, classes = 2 }
sweep = { slack = [0.5, 0.9] }
"""


def test_draws_with_one_seed_share_a_network(tmp_path: Path) -> None:
    made: list[GeneratedInstance] = []
    suite = generate_suite(tiny(SHARED), tmp_path / "suite", jobs=2, progress=made.append)
    assert len({entry.network_sha256 for entry in suite.entries}) == 1
    assert len({entry.property_sha256 for entry in suite.entries}) == 2
    assert all(each.draws >= 1 and each.cost.cpu_seconds > 0 for each in made)


def test_spelling_out_a_recipe_changes_no_instance(tmp_path: Path) -> None:
    recipe = tiny(TINY + SHARED)
    written = with_seeds(recipe)
    assert [draw.count for draw in written.draws] == [1] * 4
    assert written.size == recipe.size
    suites = [generate_suite(r, tmp_path / n, jobs=1) for r, n in ((recipe, "a"), (written, "b"))]
    first, second = ({entry.name for entry in suite.entries} for suite in suites)
    assert first == second


def test_a_misspelt_knob_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    for jobs in (1, 2):
        with pytest.raises(InputError, match="did you mean 'pairs'"):
            generate_suite(tiny(TINY.replace("pairs = 2", "pear = 2")), tmp_path / "suite", jobs=jobs)
        assert list(tmp_path.iterdir()) == []


def test_an_incomplete_suite_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    suite = generate_suite(tiny(), tmp_path / "suite")
    suite.entries[0].truth_path.unlink()
    with pytest.raises(InputError, match="holds something else"):
        generate_suite(tiny(), tmp_path / "suite")


@pytest.mark.parametrize("torn", [False, True])
def test_an_interrupted_drawing_goes_on_where_it_stopped(tmp_path: Path, torn: bool) -> None:
    seen: list[GeneratedInstance] = []

    def interrupt(made: GeneratedInstance) -> None:
        seen.append(made)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_suite(tiny(), tmp_path / "suite", jobs=1, progress=interrupt)
    assert not (tmp_path / "suite").exists()
    if torn:
        (part,) = tmp_path.iterdir()
        with (part / "done.jsonl").open("a") as journal:
            journal.write("[1, [")
    rest: list[GeneratedInstance] = []
    generate_suite(tiny(), tmp_path / "suite", jobs=1, progress=rest.append)
    assert len(rest) == 2
    assert {made.name for made in rest}.isdisjoint(made.name for made in seen)
    generate_suite(tiny(), tmp_path / "whole", jobs=1)
    assert contents(tmp_path / "suite") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "no json",
        "[]",
        "[0]",
        '["0", []]',
        '[0, "a"]',
        "[0, [1, 2]]",
        "[0, []]",
        '[99, ["a", "b"]]',
        "[NaN, []]",
    ],
)
def test_damage_in_what_an_interrupted_drawing_left_is_one_sentence(tmp_path: Path, line: str) -> None:
    def interrupt(_: GeneratedInstance) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_suite(tiny(), tmp_path / "suite", jobs=1, progress=interrupt)
    (part,) = tmp_path.iterdir()
    (part / "done.jsonl").write_text(line + "\n")
    with pytest.raises(UnreadableFile, match=rf"done.jsonl:1: .*; remove {part} to start over"):
        generate_suite(tiny(), tmp_path / "suite", jobs=1)


def test_a_shipped_suite_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    made: list[GeneratedInstance] = []
    make = partial(shipped_suite, progress=made.append)
    with pytest.raises(InputError, match="suite quick has not been generated yet; make it with `doki"):
        find_suite("quick")
    first = find_suite("quick", make=make)
    count = len(made)
    assert count == len(first.entries)
    assert find_suite("quick", make=make) == first
    assert find_suite("quick") == first
    assert len(made) == count


def test_a_cached_suite_is_of_the_present_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout changes without a new version: what its code made before must not stand for it."""
    package = tmp_path / "dokimos"
    (package / "core").mkdir(parents=True)
    monkeypatch.setattr("dokimos.core.files.__file__", str(package / "core" / "home.py"))
    keys = []
    for name, text in (("family.py", "margin = 1"), ("family.py", "margin = 2"), ("table.txt", "Abs 6")):
        (package / name).write_text(text)
        keys.append(code_key.__wrapped__())
    assert len(set(keys)) == 3
    places = []
    for key in keys:
        monkeypatch.setattr("dokimos.suites.folder.code_key", lambda key=key: key)
        places.append(cached_folder("quick"))
    assert len(set(places)) == 3


def test_errors_cross_from_one_process_to_another() -> None:
    for error in (
        UnreadableFile("a.json", "torn"),
        UnsupportedOp("Erf", "unknown", place="net"),
        InputError("x"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error)
        assert str(copy) == str(error)
