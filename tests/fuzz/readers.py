"""Every reader of files that others may have written, with files to start from.

`READERS` has one entry for each. A reader gets the path of a file in a folder of its own, reads it and does
with it what the commands do, or raises a DokimosError.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dokimos.api.campaigns import watch
from dokimos.api.editions import add_labels, find_labels
from dokimos.api.laws import lint_law
from dokimos.api.results import explain, judge, report
from dokimos.campaigns.config_file import read_config
from dokimos.campaigns.journal import Journal, RunRecord, read_history
from dokimos.campaigns.manifest import describe, read_manifest, write_manifest
from dokimos.campaigns.plan import CampaignSuite, Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.checker.check import check
from dokimos.checker.kinds import CERTIFICATES
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.data.catalogue import load_data
from dokimos.constructions.draft import make_knobs
from dokimos.constructions.recipes import parse_recipe, with_seeds
from dokimos.core.errors import DokimosError
from dokimos.core.strict_json import write
from dokimos.engine.runtimes.sessions import Replayer
from dokimos.judging.baselines import read_baseline
from dokimos.judging.label_one import OpenForm, read_open_form
from dokimos.judging.published_results import import_results
from dokimos.judging.written_points import read_point
from dokimos.laws.domain.data_frames import read_csv_table
from dokimos.laws.domain.definition import load_domain
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.pools import pool_file, read_pool
from dokimos.laws.language.parser import parse_law, read_law
from dokimos.laws.language.templates import first_laws
from dokimos.laws.models.lookup import load_model
from dokimos.laws.reporting.violation_files import read_violations, save_result
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer
from dokimos.suites.entry import (
    SuiteEntry,
    TruthForm,
    load_truth,
    read_content,
    read_form,
    read_onnx_file,
    read_text,
    read_vnnlib_file,
)
from dokimos.suites.facts import (
    COMPONENTS,
    Measurement,
    Profile,
    ProfileSettings,
    dump_profile,
    load_profile,
    read_facts,
)
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Instance, Label, Truth, sha256
from dokimos.suites.suite_files import InstanceFiles, dump_truth, store_files, write_index
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import write_vnnlib2
from dokimos.verifiers.execution.limits import Limits, Termination
from dokimos.verifiers.result_file import read_result, read_verdict
from tests.corpus.make_certificates import CORPUS
from tests.engine.test_open_cover import ended, kept_of
from tests.fuzz.mutators import (
    Change,
    change_assignment,
    change_bytes,
    change_json,
    change_json_lines,
    change_onnx,
    change_words,
)
from tests.fuzz.named_inputs import (
    Named,
    archive,
    deep_json,
    journals,
    named_archives,
    named_domains,
    named_laws,
    named_truths,
    networks,
    pools,
    properties,
    recipes,
    results,
    tables,
)
from tests.fuzz.readers_of_competitions import (
    EDITION,
    OVERRIDES,
    bounds,
    findings,
    read_any_bounds,
    read_any_edition,
    read_any_finding,
    read_any_hunt,
    rounds,
)
from tests.fuzz.readers_of_laws import (
    BREAKS,
    KEEPS,
    boosted,
    read_any_boosted,
    read_any_proof,
    read_any_repair,
    read_any_trees,
    repairs,
    saved,
)
from tests.laws.toy import domain, risk

Read = Callable[[Path, int], object]
"""Reads the file at a path, which was made of the seed of that number."""

ACCEPTED = CORPUS / "accept"
VNNLIB = CORPUS.parent / "vnnlib" / "accept"
LAWS = CORPUS.parent / "laws" / "accept"
RECORDED = Path(__file__).parent.parent / "campaigns" / "recorded"
#: One in so many campaigns that can be judged is also explained and shown on a page, which takes longer.
SHOWN = 8

DOMAIN = b"""\
import numpy as np
from dokimos.laws import choice, integer, real, text

FEATURES = [integer("age", 18, 90), real("income", 0, 10), choice("sex", "Female", "Male")]
INDICES = {-1: "sex"}
GROUPS = ["sex"]
CLASSES = ["low", "high"]
DECISION = "risk"
ORDERED = True
MODELS = {"all low": lambda: low}

def low(records):
    return np.zeros(len(records), dtype=np.int64)

low.batched = True

def model():
    return low

def inputs():
    return [[20, 1.5, 1, 0], [30, 2.5, 0, 1]]

def labels():
    return [0, 1]

def decide(scores):
    return scores

def older(record, years):
    return record

def double_batch(values):
    return values
"""
OLDER = """input x1; var v := x1.age + randInt(1, 10); requires v <= 90 && x1.sex == 0;
var x2 := x1[age := v];
output d1; output d2; { d1 = predict(x1)
  d2 = predict(x2) } ensures d1 <= d2;"""

ORIGIN = {"family": "f", "parameters": {"pairs": 2, "gamma": 0.5, "kind": "a"}, "seed": 1}
CONFIG = b"""suites = ["quick"]
rules = ["exact"]
[[verifiers]]
name = "mine"
place = "./tools/mine"
[limits]
timeout = "60s"
memory = "4GB"
jobs = 2
"""
RECIPE = b"""\
about = "tiny"
seed = 3
timeout_seconds = 5
[[draw]]
family = "exclusive-pairs"
count = 2
knobs = { inputs = 20, pairs = 2 }
[[draw]]
family = "paired-bias"
knobs = { size = 5, depth = 0 }
sweep = { pairs = [2, 3] }
labels = ["unsat"]
disguise = ["permute"]
"""


@dataclass(frozen=True)
class Reader:
    """What reads one kind of file: the name of the file, how to change it, what to start from."""

    filename: str
    read: Read
    changes: tuple[Change, ...]
    seeds: Callable[[], list[bytes]]
    #: Files that once cost too much or ended in a traceback; a path stands for a link to it.
    named: Callable[[], Named] = dict


def require_true(network: Network, asked: Property, truth: Truth) -> None:
    """What the checker has accepted, held against a few points of the box, or the witness, exactly."""
    if truth.label is Label.SAT:
        assert truth.witness is not None
        assert violation_at(network, asked, truth.witness).violates is not False, "a false sat is proven"
        return
    rng = random.Random(0)
    for case in asked.cases:
        if case.box.is_empty:
            continue
        for _ in range(8):
            shares = [Fraction(rng.choice((0, 1, 2, 3, 4)), 4) for _ in case.box.lower]
            ends = zip(case.box.lower, case.box.upper, shares, strict=True)
            point = [low + (high - low) * share for low, high, share in ends]
            assert not violation_at(network, asked, point).violates, "a false unsat is proven"


@cache
def proofs() -> tuple[tuple[bytes, bytes, Truth], ...]:
    """Accepted proofs of every kind: network, property and truth."""
    from tests.checker.statements import base_statements

    found = [
        (
            read_content(folder / "network.onnx"),
            read_content(folder / "property.vnnlib"),
            load_truth(read_text(folder / "truth.json"), file="truth"),
        )
        for folder in sorted(ACCEPTED.iterdir())
    ]
    for kind in sorted(set(CERTIFICATES) - {truth.certificate.kind for _, _, truth in found}):
        base = base_statements(kind)[0]
        found.append((base.network, base.instance.property_file, base.truth))
    return tuple(found)


def prove_if_accepted(network_file: bytes, property_file: bytes, truth: Truth) -> None:
    """Check a truth that speaks of these files; what is accepted must be true."""
    told = replace(truth, network_sha256=sha256(network_file), property_sha256=sha256(property_file))
    try:
        check(Instance("fuzzed", network_file, property_file, 1.0, "fuzzed"), told)
    except DokimosError:
        return
    require_true(read_onnx(network_file), read_vnnlib(property_file, file="property"), told)


def read_network(path: Path, number: int) -> None:
    read_onnx_file(path)
    _, asked, truth = proofs()[number]
    prove_if_accepted(read_content(path), asked, truth)


def read_property(path: Path, number: int) -> None:
    read_vnnlib_file(path)
    network, _, truth = proofs()[number]
    prove_if_accepted(network, read_content(path), truth)


def read_truth(path: Path, number: int) -> None:
    network, asked, _ = proofs()[number]
    prove_if_accepted(network, asked, load_truth(read_text(path), file=str(path)))
    form = read_form(read_text(path), TruthForm, file=path)
    facts = read_facts(read_suite(suite()), 0, form, network_sha256="", property_sha256="")
    str((facts.knobs, facts.variant, facts))


def read_property2(path: Path, number: int) -> None:
    asked = read_vnnlib_file(path)
    if len(asked.networks) == 1 and asked.cases:
        read_vnnlib(write_vnnlib2(asked).encode(), file="written again")


def read_campaign_files(path: Path, number: int) -> None:
    """Everything that is done with a campaign: its manifest, or its journal, is the file at `path`."""
    folder = path.parent
    for name, content in campaign().items():
        if name != path.name:
            (folder / name).write_bytes(content)
    read_manifest(folder / "manifest.json")
    read_history(folder / "journal.jsonl")
    for seen in watch(folder, once=True):
        str(seen)
    judged = judge(folder, rules=["exact", "vnncomp2026"])
    if random.Random(path.read_bytes()).randrange(SHOWN) == 0:
        explain(judged, resamples=100)
        report(judged, html=folder / "report.html", csv=folder / "tables")


@cache
def suite() -> Path:
    """A suite of two proven instances, made once for this process."""
    folder = Path(tempfile.mkdtemp(prefix="dokimos-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    names = ["ordered-pairs", "witness"]
    for name in names:
        network, asked = (
            read_content(ACCEPTED / name / file) for file in ("network.onnx", "property.vnnlib")
        )
        truth = read_text(ACCEPTED / name / "truth.json")
        store_files(folder, InstanceFiles(name, "", network, asked, truth))
    write_index(folder, [(name, "tiny") for name in names], 1, recipe={"seed": 7}, version="0")
    return folder


@cache
def campaign() -> dict[str, bytes]:
    """The manifest and the journal of a campaign on that suite."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        found = read_suite(suite())
        tools = [Tool("scripted", "1"), Tool("other", "2.0")]
        settings = RunSettings(timeout_seconds=30)
        limits = settings.limits(30)
        suites = [CampaignSuite(found.folder, found.entries, name="tiny")]
        write_manifest(describe(suites, tools, settings), out / "manifest.json")
        with Journal(out / "journal.jsonl") as journal:
            for entry, answer in zip(found.entries, (Answer.UNSAT, Answer.SAT), strict=True):
                for tool in tools:
                    journal.started(f"{entry.name}-{tool.name}", "2026-01-01T00:00:00+00:00")
                    journal.finish(record(entry, tool, answer, limits))
        return {path.name: path.read_bytes() for path in out.iterdir()}


def record(entry: SuiteEntry, tool: Tool, answer: Answer, limits: Limits) -> RunRecord:
    truth = entry.read_truth()
    assert truth is not None
    return RunRecord(
        job=f"{entry.name}-{tool.name}",
        suite="tiny",
        instance=entry.name,
        family="tiny",
        verifier=tool.name,
        verifier_version=tool.version,
        repeat=0,
        answer=answer,
        witness=truth.witness,
        detail="",
        termination=Termination.EXITED,
        exit_code=0,
        wall_seconds=0.25,
        cpu_seconds=0.125,
        peak_memory_bytes=12,
        log=f"logs/{entry.name}.log",
        started_at="2026-01-01T00:00:00+00:00",
        limits=limits,
        enforced_by="nothing",
    )


def profiles() -> list[bytes]:
    settings = ProfileSettings(samples=2)
    measured = {name: Measurement(0.5) for name in COMPONENTS}
    extras = {
        "size": Measurement(3.0),
        "other": Measurement.infinite("no bound"),
        "n": Measurement(None, "no"),
    }
    made = Profile(
        instance="i",
        network_sha256="0" * 64,
        property_sha256="1" * 64,
        settings=settings,
        components=measured,
        extras=extras,
    )
    return [dump_profile(made).encode()]


BLOCK = "output d1; output d2; { d1 = predict(x1)\n  d2 = predict(x2) }"
TOY_LAWS = [
    f"""input x1; var v := x1.felonies + randInt(1, 10); requires v <= 20 && x1.age / 2 > 1;
var x2 := x1[felonies := v, sex := 1]; {BLOCK} ensures d1 <= d2 || abs(d1 - d2) == max(1, 2);""",
    f"""input x1; input x2; requires forall i in 0..1: getFeat(x1, i) == getFeat(x2, i);
var s := strConcat('a', "b"); {BLOCK} ensures s == 'ab' ==> d1 == d2;""",
    f"""input x1; var r := randReal(0.5, 1.5); var x2 := setFeat(x1, 2, x1.income * r % 3 - -1);
{BLOCK} ensures !(d1 != d2);""",
]


def read_any_law(path: Path, number: int) -> None:
    [checked] = lint_law(path)
    if checked.error is not None:
        raise checked.error
    settings = LawSettings(budget=20, allow_code=False)
    # Not all laws of the corpus fit this domain.
    with contextlib.suppress(*([DokimosError] if number >= len(TOY_LAWS) else [])):
        run_law(read_law(path), model=risk, domain=domain(), settings=settings)


def read_any_model(path: Path, number: int) -> None:
    """As `law test --model` does; networks that nobody here reads, too."""
    model = load_model(path, None)
    records = np.zeros((2, Replayer(path.read_bytes()).input_size), np.float32)
    try:
        model.predict(records)
    except ValueError as error:  # which tests of laws count as a failure of the model
        if "decision" not in str(error):
            raise


def toy_laws() -> list[bytes]:
    return [*(text.encode() for text in TOY_LAWS), *contents(LAWS, "*")]


def read_any_domain(path: Path, number: int) -> None:
    found = load_domain(str(path))
    result = run_law(parse_law(OLDER), domain=found, settings=LawSettings(budget=20))
    save_result(result, path.parent / "found.json")
    read_violations(path.parent / "found.json")


def violations() -> list[bytes]:
    law = parse_law(OLDER.replace(".age", ".felonies").replace("age :=", "felonies :=").replace("90", "20"))
    result = run_law(law, model=risk, domain=domain(), settings=LawSettings(budget=100))
    with tempfile.TemporaryDirectory() as name:
        save_result(result, Path(name, "found.json"))
        return [Path(name, "found.json").read_bytes()]


def read_any_config(path: Path, number: int) -> None:
    read_config(path)


def read_any_recipe(path: Path, number: int) -> None:
    recipe = parse_recipe(read_text(path), file=str(path))
    if recipe.size <= 1000:
        json.dumps(with_seeds(recipe).as_json())
    for draw in recipe.draws[:10]:
        construction = CONSTRUCTIONS[draw.family]
        make_knobs(construction.knobs_class, draw.knobs, family=construction.family)


def read_any_result(path: Path, number: int) -> None:
    """Both kinds of result files; a ValueError is how these readers refuse."""
    for read in (read_result, read_verdict):
        with contextlib.suppress(ValueError):
            read(path)


WITNESS = b"sat\nX float32 [1,2]\n0.5\n-1e-3\nY float32 [1, 1]\n0.25\n"
RESULTS = [
    b'{"schema": 1, "answer": "sat", "witness": ["0.25", "-1e-3"], "outputs": ["1"], "detail": ""}',
    b"sat\n((X_0 0.025)\n (X_1 0.9)\n (Y_0 -0.035))\n",
    WITNESS,
]


def read_any_table(path: Path, number: int) -> None:
    """The list of instances, or how it was made, of a suite that has its other files."""
    others = shutil.ignore_patterns(path.name)
    shutil.copytree(suite(), path.parent, dirs_exist_ok=True, ignore=others)
    for entry in read_suite(path.parent).entries:
        entry.read_truth()


def suite_file(name: str) -> list[bytes]:
    return [(suite() / name).read_bytes()]


def read_any_open(path: Path, _: int) -> None:
    """A search that is open, which goes on from there for a moment."""
    form = read_open_form(path)
    ended("units" if form.search is None or not form.search.cuts_inputs else "inputs", 1, form.search)


def open_forms() -> list[bytes]:
    return [
        write(OpenForm("0" * 64, "1" * 64, "0", 2.0, "why", 0.25, -0.5, kept_of(mode))).encode()
        for mode in ("inputs", "units")
    ]


def read_any_baseline(path: Path, number: int) -> None:
    str(read_baseline(path).expected)


def read_any_labels(path: Path, number: int) -> None:
    """A database in one file, shown and taken over: each record is a file of the folder, under its key."""
    store = path.with_name("database")
    add_labels(path, database=store)
    records = find_labels(database=store).to_records()
    assert len(records) == len(list(store.iterdir()))
    assert "\x1b" not in str(records)


def kept_labels() -> list[bytes]:
    labels = Path(__file__).parents[2] / "studies" / "labels.jsonl.gz"
    lines = sorted(read_content(labels).splitlines(keepends=True), key=len)
    return [b"".join(lines[:3]), lines[10]]


BASELINE = b"""{"schema": 1,
"runs": [{"verifier": "mine", "suite": "s", "instance": "i", "verdict": "correct",
  "seconds": 0.5, "limit_seconds": 10.0}],
"expected_failures": [{"verifier": "mine", "suite": "s", "instance": "j", "reason": "known"}]}
"""


def read_any_published(path: Path, number: int) -> None:
    """As `audit --results` does: the table is that of a tool, beside one counterexample."""
    folder = path.parent / "published" / "tool" / "2025_tiny"
    folder.mkdir(parents=True)
    path.rename(folder / "results.csv")
    (folder / "witness.counterexample").write_bytes(POINTS[1])
    found = read_suite(suite())
    given = [CampaignSuite(found.folder, found.entries, name="tiny")]
    import_results(path.parent / "published", given, path.parent / "campaign")


PUBLISHED = b"""tiny,onnx/ordered-pairs.onnx,vnnlib/ordered-pairs.vnnlib,0.1,unsat,1.5
tiny,./onnx/witness.onnx,./vnnlib/witness.vnnlib,0.1,sat,2
tiny,onnx/witness.onnx,vnnlib/witness.vnnlib,0,timeout,100
"""


def read_any_pool(path: Path, number: int) -> None:
    read_pool(path, None)


def arrays() -> list[bytes]:
    return [pool_file(np.arange(6.0).reshape(3, 2), ".npy")]


def read_any_data(path: Path, number: int) -> None:
    str(load_data(path).classes)


def read_any_instances(path: Path, number: int) -> None:
    """The table of a suite, as a suite's folder is read."""
    for folder in ("onnx", "vnnlib", "truth"):
        if not (path.parent / folder).exists():
            shutil.copytree(suite() / folder, path.parent / folder)
    str([*read_suite(path.parent)])


def read_any_records(path: Path, number: int) -> None:
    """A table of records, as `law init` reads it; what is written from it must be readable."""
    table = read_csv_table(path)
    made = first_laws(table, list(table.columns)[-1], data=path.name)
    ast.parse(made.text)
    for text in made.laws.values():
        parse_law(text)


TABLES = [b"age,sex,granted\n18,f,0\n60,m,1\n40,f,1\n", b"income;own\n1.5e3;yes\n-.5;no\n7;yes\n"]


def instance_tables() -> list[bytes]:
    row = b"\"[('f', 'onnx/witness.onnx')]\",vnnlib/witness.vnnlib,1\n"
    return [(suite() / "instances.csv").read_bytes(), row]


def archives() -> list[bytes]:
    labels = pool_file(np.array([0, 1]), ".npy")
    return [archive(x=pool_file(np.eye(2), ".npy"), y=labels)]


def contents(folder: Path, pattern: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob(pattern))]


TEXT: tuple[Change, ...] = (change_words, change_bytes)
JSON: tuple[Change, ...] = (change_json, change_words, change_bytes)
LINES: tuple[Change, ...] = (change_json_lines, change_words, change_bytes)

POINTS = [
    b"0.5, -1e-3 7",
    b"sat\n((X_0 0.5)\n (X_1 -1.25)\n (Y_0 3))\n",
    b"sat\nX float32 [1,2]\n0.5\n-1.25\n",
]
READERS: dict[str, Reader] = {
    "onnx": Reader(
        "network.onnx",
        read_network,
        (change_onnx, change_bytes),
        lambda: [p[0] for p in proofs()],
        networks,
    ),
    "vnnlib1": Reader("p.vnnlib", read_property, TEXT, lambda: [p[1] for p in proofs()], properties),
    "vnnlib2": Reader("p.vnnlib", read_property2, TEXT, lambda: contents(VNNLIB, "*.vnnlib")),
    "truth": Reader(
        "truth.json",
        read_truth,
        JSON,
        lambda: [dump_truth(p[2], origin=ORIGIN).encode() for p in proofs()],
        named_truths,
    ),
    "manifest": Reader(
        "manifest.json", read_campaign_files, JSON, lambda: [campaign()["manifest.json"]], deep_json
    ),
    "journal": Reader(
        "journal.jsonl", read_campaign_files, LINES, lambda: [campaign()["journal.jsonl"]], journals
    ),
    "profile": Reader("profile.json", lambda p, _: load_profile(p), JSON, profiles, deep_json),
    "law": Reader("some.law", read_any_law, TEXT, toy_laws, named_laws),
    "model": Reader(
        "model.onnx",
        read_any_model,
        (change_onnx, change_bytes),
        lambda: [p[0] for p in proofs()],
        networks,
    ),
    "violations": Reader("found.json", lambda p, _: read_violations(p), JSON, violations, deep_json),
    "domain": Reader(
        "people.py", read_any_domain, (change_assignment, *TEXT), lambda: [DOMAIN], named_domains
    ),
    "config": Reader("dokimos.toml", read_any_config, TEXT, lambda: [CONFIG], recipes),
    "recipe": Reader("recipe.toml", read_any_recipe, TEXT, lambda: [RECIPE], recipes),
    "result": Reader(
        "result", read_any_result, (change_words, change_json, change_bytes), lambda: RESULTS, results
    ),
    "point": Reader("point", lambda p, _: read_point(p), TEXT, lambda: POINTS),
    "pool": Reader("pool.npy", read_any_pool, (change_bytes,), arrays, pools),
    "trees": Reader("trees.json", read_any_trees, JSON, lambda: [KEEPS, BREAKS], deep_json),
    "proof": Reader("older.json", read_any_proof, JSON, lambda: list(saved()), deep_json),
    "suite": Reader("suite.json", read_any_table, JSON, lambda: suite_file("suite.json"), deep_json),
    "baseline": Reader("baseline.json", read_any_baseline, JSON, lambda: [BASELINE], deep_json),
    "labels": Reader("labels.jsonl.gz", read_any_labels, JSON, kept_labels, deep_json),
    "open": Reader("open.json", read_any_open, JSON, open_forms, deep_json),
    "edition": Reader("edition.toml", read_any_edition, TEXT, lambda: [EDITION], recipes),
    "overrides": Reader("overrides.toml", read_any_edition, TEXT, lambda: [OVERRIDES], recipes),
    "finding": Reader("finding.json", read_any_finding, JSON, findings, deep_json),
    "hunt": Reader("hunt.jsonl", read_any_hunt, LINES, rounds, deep_json),
    "bounds": Reader("bounds.npz", read_any_bounds, (change_bytes,), bounds, named_archives),
    "repair": Reader("left.json", read_any_repair, JSON, repairs, deep_json),
    "published": Reader("results.csv", read_any_published, TEXT, lambda: [PUBLISHED]),
    "instances": Reader("instances.csv", read_any_instances, TEXT, instance_tables),
    "records": Reader("people.csv", read_any_records, TEXT, lambda: TABLES),
    "npz": Reader("data.npz", read_any_data, (change_bytes,), archives, named_archives),
    "table": Reader("data.csv", read_any_data, TEXT, lambda: [b"a,b,label\n0.5,1,0\n0.25,0,1\n"], tables),
}


def boosted_files(library: str) -> list[bytes]:
    return list(boosted(library))


#: Files of libraries that `make test` does not install, where they are: of C++ that looks at little.
BOOSTED: dict[str, tuple[str, tuple[Change, ...]]] = {
    "xgboost": ("model.ubj", (change_bytes,)),
    "lightgbm": ("model.txt", TEXT),
    "catboost": ("model.cbm", (change_bytes,)),
}
READERS |= {
    library: Reader(name, read_any_boosted, changes, partial(boosted_files, library))
    for library, (name, changes) in BOOSTED.items()
    if find_spec(library) is not None
}
