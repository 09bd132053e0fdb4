"""Where inputs and labels come from, and what is said where they cannot be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.confirmation import _no_labels
from dokimos.laws.engine.draws import Pool, find_source
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.language.syntax import LawError
from tests.laws.toy import MORE_FELONIES, domain, inputs, law, risk, run


def test_ranges_and_pools(tmp_path: Any) -> None:
    found = run(MORE_FELONIES, source="range", budget=2000)
    assert found.source == "range" and found.is_violated and found.tested == 2000
    assert "row" not in found.violations[0].words
    np.save(tmp_path / "a.npy", inputs()[:5])
    rows = [",".join(map(str, row)) for row in inputs()[:5]]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    names = "age,felonies,income,recid,sex_Female,sex_Male"
    (tmp_path / "b.csv").write_text("\n".join([names, *rows]))
    (tmp_path / "a.json").write_text(str(inputs()[:5].tolist()))
    pools = [
        run(MORE_FELONIES, source=f"pool:{tmp_path / name}")
        for name in ("a.npy", "a.csv", "b.csv", "a.json")
    ]
    assert len({(each.draws, each.violated) for each in pools}) == 1
    assert pools[0].draws == 50


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", b"no array", "is not an array"),
        ("a.json", b"{", "not valid JSON"),
        ("a.json", b"{}", "not a list of records"),
        ("a.json", b"[]", "there are no records"),
        ("a.json", b"[[1, 2]]", "FEATURES has 6 columns"),
        ("a.json", b'[[1, 2, 3, 4, 5, "a"]]', "not a number"),
        ("a.csv", b"1,2\n3", "different numbers of columns"),
        ("b.csv", None, "cannot be read"),
    ],
)
def test_unusable_pools(tmp_path: Any, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        run(MORE_FELONIES, source=f"pool:{tmp_path / name}")


def test_unusable_sources_and_models() -> None:
    with pytest.raises(InputError, match="test, range or pool:FILE"):
        run(MORE_FELONIES, source="nowhere")
    with pytest.raises(InputError, match="has none of its own"):
        run(MORE_FELONIES, model=None)
    with pytest.raises(InputError, match="imports no domain"):
        run_law(law("input x1; var x2 := x1;"), model=risk)
    with pytest.raises(InputError, match="domain toy has no test set"):
        run_law(law("input x1; var x2 := x1;"), model=risk, domain=Domain("toy", place="toy.py"))
    with pytest.raises(InputError, match="no ranges"):
        run_law(law("input x1; var x2 := x1;"), model=risk, settings=LawSettings(source="range"))
    for low, high, message in ((None, 1, "has no range"), (2, 1, "is empty")):
        from dokimos.laws import real

        with pytest.raises(InputError, match=message):
            run("input x1; var x2 := x1;", of=domain(FEATURES=[real("a", low, high)]), source="range")
    with pytest.raises(InputError, match="inputs raised RuntimeError"):
        run("input x1; var x2 := x1;", of=domain(inputs=_raise))
    with pytest.raises(InputError, match="3 labels for 40 inputs"):
        run("input x1; var x2 := x1; requires label(x1) == 0;", of=domain(labels=lambda: [0, 1, 2]))
    with pytest.raises(InputError, match="have no label"):
        run(
            "input x1; var x2 := x1; requires label(x1) == 0;",
            of=domain(labels=lambda: [0]),
            source="range",
        )
    with pytest.raises(InputError, match="not a record"):
        run("input x1; var x2 := x1.age;")
    with pytest.raises(InputError, match="do not come from a test set with labels"):
        _no_labels()


def _raise() -> Any:
    raise RuntimeError("no data")


def test_the_domains_own_model_and_labels() -> None:
    labels = risk(inputs())
    found = run(
        "input x1; var x2 := x1; ENSURES d1 == label(x1) && d2 == label(x2)",
        model=None,
        of=domain(model=lambda: risk, labels=lambda: labels),
    )
    assert (found.tested, found.violated) == (40, 0)


def test_texts_beside_numbers(tmp_path: Any) -> None:
    from dokimos.laws import integer, text

    (tmp_path / "a.csv").write_text("note,age\nshort,30\nlonger note,40\n")
    of = domain(FEATURES=[text("note"), integer("age")])
    found = run(
        "input x1; var x2 := x1[age := x1.age + 10]; ENSURES d2 == d1 + 10 && x1.note == x2.note",
        model=lambda record: record[1],
        of=of,
        source=f"pool:{tmp_path / 'a.csv'}",
    )
    assert (found.tested, found.violated) == (2, 0)


@pytest.mark.parametrize("given", [7, None, np.array(3.0)])
def test_inputs_and_labels_that_are_no_lists(given: Any) -> None:
    with pytest.raises(InputError, match="this is not a list of records"):
        run(MORE_FELONIES, of=domain(inputs=lambda: given))
    with pytest.raises(InputError, match="does not return a list of labels"):
        run("input x1; var x2 := x1; requires label(x1) == 0;", of=domain(labels=lambda: given))


class Table:
    """As tables of other packages are: not made of rows, but to be had as an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return inputs()

    def __iter__(self) -> Any:
        return iter(["age", "felonies"])


def test_tables_are_inputs() -> None:
    found, wanted = (run(MORE_FELONIES, of=domain(inputs=given)) for given in (Table, inputs))
    assert (found.violated, found.draws) == (wanted.violated, wanted.draws)


def test_labels_that_are_words() -> None:
    words = ["low", "high"] * 20
    text = "input x1; requires label(x1) == 'low'; var x2 := x1;"
    for labels in (words, np.array(words)):
        assert run(text, of=domain(labels=lambda labels=labels: labels)).tested == 20
    mixed = ["low", 1] * 20
    assert (
        run("input x1; requires label(x1) == 1; var x2 := x1;", of=domain(labels=lambda: mixed)).tested
        == 20
    )
    with pytest.raises(LawError, match="never equal to a string"):
        run(
            "input x1; output d1; { d1 = predict(x1) } ensures d1 == label(x1);",
            of=domain(labels=lambda: words),
        )


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_an_array_is_not_copied(kind: Any) -> None:
    data = inputs().astype(kind)
    of = domain(inputs=lambda: data)
    pool = find_source("test", of)
    assert isinstance(pool, Pool) and np.shares_memory(pool.data, data)
    drawn = pool.at(np.arange(3)).data
    assert drawn.dtype == np.float64 and not np.shares_memory(drawn, data)
