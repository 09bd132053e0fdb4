"""The domains that ship: their columns, their laws, their networks."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import DOMAINS, Domain, load_domain, shipped_domains, shipped_laws
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.examples.training import Study, relu_network, train_layers
from dokimos.laws.language.formatting import format_law
from dokimos.laws.language.parser import parse_law, read_law
from dokimos.laws.language.validation import check_law
from dokimos.laws.models.files import onnx_model
from dokimos.laws.models.lookup import load_model
from tests.cli.test_law import run as cli

TABLES = ("compas", "german_credit")
LAWS = [path for name in shipped_domains() for path in shipped_laws(name)]


def study_of(name: str) -> Study:
    found: Study = import_module(f"dokimos.laws.examples.{name}").STUDY
    return found


def with_data(name: str) -> Domain:
    """A shipped domain; skips the test where its data cannot be fetched."""
    domain = load_domain(name)
    assert domain.inputs is not None
    try:
        domain.inputs()
    except InputError as problem:
        pytest.skip(str(problem))
    return domain


def test_there_are_all_laws() -> None:
    counts = {name: len(shipped_laws(name)) for name in DOMAINS.shipped}
    assert counts == {"compas": 12, "german_credit": 10}
    assert shipped_laws("nothing") == []


@pytest.mark.no_cover
@pytest.mark.parametrize("path", LAWS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_laws_are_laid_out_and_check(path: Path) -> None:
    law = read_law(path)
    assert law.imports[0].name == path.parent.name
    assert check_law(law, load_domain(path.parent.name)) == ()
    assert format_law(law) == law.text


def test_columns_are_those_of_the_data() -> None:
    compas, german = load_domain("compas").layout, load_domain("german_credit").layout
    assert compas is not None and german is not None
    assert (compas.width, german.width) == (36, 61)
    assert [compas.named(name).start for name in ("is_recid", "is_violent_recid", "sex", "race")] == [
        7,
        10,
        13,
        15,
    ]
    starts = [german.named(name).start for name in ("credit_amount", "credit_history", "employment", "job")]
    assert starts == [1, 11, 31, 53]
    assert [german.at(index).feature.name for index in (-1, -2, -3)] == [
        "credit_history",
        "employment",
        "job",
    ]


@pytest.mark.parametrize("name", TABLES)
def test_the_data_is_what_the_columns_say(name: str) -> None:
    domain = with_data(name)
    assert domain.inputs is not None and domain.labels is not None and domain.layout is not None
    data, labels = domain.inputs(), domain.labels()
    assert len(data) == len(labels) and set(labels) == set(range(len(domain.classes)))
    for slot in domain.layout.slots:
        values = data[:, slot.start : slot.stop]
        if slot.feature.values:
            assert set(values.sum(axis=1)) <= ({0.0, 1.0} if "charge" in slot.feature.name else {1.0})
        else:
            low, high = slot.feature.low, slot.feature.high
            assert low is not None and high is not None
            missing_is_zero = values[values != 0]
            assert (
                missing_is_zero.size == 0 or low <= missing_is_zero.min() <= missing_is_zero.max() <= high
            )


@pytest.mark.no_cover
@pytest.mark.parametrize("name", TABLES)
def test_networks_learn_and_laws_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = with_data(name)
    assert domain.model is not None and domain.inputs is not None and domain.labels is not None
    study_of(name).split  # noqa: B018  # the data is loaded from the real cache, the model goes to another
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    path = domain.model()
    assert path == domain.model() and path.is_relative_to(tmp_path)
    model = load_model(path, domain)
    right = (model.predict(domain.inputs()) == domain.labels()).mean()
    assert right > 0.6
    results = [
        run_law(read_law(each), model=model, domain=domain, settings=LawSettings(budget=300))
        for each in shipped_laws(name)
    ]
    assert all(each.tested and not each.failed for each in results)
    assert any(each.is_violated for each in results)
    assert study_of(name).train() == path.read_bytes()
    assert "% of" in study_of(name).quality(path.read_bytes())
    assert cli("test", name, "--budget", 50, "--model", path).exit_code == 1


@pytest.mark.parametrize("name", TABLES)
def test_trees_and_networks_learn_more_than_the_most_frequent_class(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = with_data(name)
    assert domain.inputs is not None and domain.labels is not None
    study_of(name).split  # noqa: B018
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    data, labels = domain.inputs(), domain.labels()
    usual = np.bincount(labels).max() / len(labels)
    for kind in ("network", "tree"):
        assert (load_model(kind, domain).predict(data) == labels).mean() > usual
    assert cli("test", name, "--budget", 50, "--model", "tree", "--no-code").exit_code in (0, 1)


def test_laws_of_the_published_tool_run_on_the_shipped_domain() -> None:
    domain = with_data("german_credit")
    text = """import german_credit;
input x1;
var v1 := getFeat(x1, -3);
var v2 := v1 + 1;
var v3 := randInt(v2, 3);
var x2 := setFeat(x1, -3, v3);
output d1;
output d2;
{
d1 = german_credit.predict(x1)
d2 = german_credit.predict(x2)
}
// 0-accept, 1-decline
ensures d2 <= d1;
"""
    job = next(path for path in shipped_laws("german_credit") if path.stem == "job_inc")
    model = lambda record: int(record[53] == 0)  # noqa: E731
    found, own = (run_law(law, model=model, domain=domain) for law in (parse_law(text), read_law(job)))
    assert (found.tested, found.violated) == (own.tested, own.violated)


def test_training_separates_what_can_be_separated() -> None:
    rng = np.random.default_rng(0)
    records = rng.normal(5, 3, size=(400, 3))
    records[:, 2] = 7
    labels = (records[:, 0] > records[:, 1]).astype(np.int64)
    network = relu_network(train_layers(records, labels, hidden=(8,), epochs=20, seed=1))
    assert (onnx_model(network, None, name="n").predict(records) == labels).mean() > 0.95
    assert network == relu_network(train_layers(records, labels, hidden=(8,), epochs=20, seed=1))
    study = Study("s", lambda: (records, labels), hidden=(4,), epochs=1)
    split = study.split
    assert len(split.test) == 132 and len(split.train) == 268


def test_the_network_of_every_domain_has_a_name() -> None:
    for name in shipped_domains():
        domain = load_domain(name)
        assert domain.models["network"] is domain.model
