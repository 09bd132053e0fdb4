"""The table of commands; the module of a command is loaded when it is called, or asked for its help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from dokimos import __version__


@dataclass(frozen=True)
class Entry:
    """A command, or a group of them, as help lists it.

    `place` is the function, as ``module:name`` in this package (of a group: what it does without a
    command, or empty); `example` is what follows `dokimos` on a line that works. `loose` lets words through
    that look like options.
    """

    about: str
    place: str = ""
    example: str = ""
    loose: Mapping[str, bool] = field(default_factory=dict)
    commands: Mapping[str, Entry] = field(default_factory=dict)

    def function(self) -> Any:
        """The function, with its module loaded."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"dokimos.cli.{module}"), name)


_FROM_DIGITS = "--model nets/digits-fc.onnx --data digits"
_KNOBS = {"allow_extra_args": True, "ignore_unknown_options": True}
_LAW = {
    "init": Entry(
        "Write a domain and three first laws from a table of data.",
        "law:init",
        "law init people.csv --target decision --out started",
    ),
    "new": Entry(
        "Start a law from a template.",
        "law:new",
        "law new monotone --feature age --domain people --out older.law",
    ),
    "lint": Entry("Parse laws, and show what is wrong with each.", "law:lint", "law lint older.law"),
    "fmt": Entry("Format the files of laws.", "law:fmt", "law fmt older.law --check"),
    "test": Entry("Test a model against laws.", "law:test", "law test older.law --budget 100 --out found"),
    "replay": Entry("Replay saved violations.", "law:replay", "law replay found/older.json --allow-code"),
    "verify": Entry(
        "Prove laws of a model for every case, or find a violation.",
        "law_verify:verify",
        "law verify older.law --model score.onnx --out proven",
    ),
    "export": Entry(
        "Write laws on a network as a suite for any verifier.",
        "law_verify:export",
        "law export older.law --model score.onnx --out asked",
    ),
    "repair": Entry(
        "Change a model until it keeps a law.",
        "law:repair",
        "law repair older.law --model score.onnx --seeds 1 --epochs 2 --out kept.onnx",
    ),
    "fuzz": Entry(
        "Draw a pool of inputs from a domain.",
        "law:fuzz",
        "law fuzz people.py --size 10 --out pool.json",
    ),
    "convert": Entry(
        "Convert scikit-learn's trees to a file without code.",
        "law:convert",
        "law convert trees.pkl --domain people.py --out trees.json",
    ),
}
#: Every command, by the heading under which help lists it.
COMMANDS: dict[str, dict[str, Entry]] = {
    "Make": {
        "generate": Entry(
            "Make instances with proven labels: a family, or a suite.",
            "generate:generate",
            "generate exclusive-pairs --pairs 1 --inputs 20 --out pairs",
            _KNOBS,
        ),
        "hide": Entry(
            "Plant counterexamples that attacks do not find.",
            "hide:hide",
            "hide --arch mlp4 --input 10 --points 1 --scale 0.05 --out hidden",
        ),
        "properties": Entry(
            "Make properties with labels from your own model and data.",
            commands={
                "pgd": Entry(
                    "Records that resist PGD.",
                    "properties:pgd",
                    f"properties pgd {_FROM_DIGITS} --epsilon 0.01 --count 2 --out pgd",
                ),
                "oval": Entry(
                    "Records at a radius between proven and broken.",
                    "properties:oval",
                    f"properties oval {_FROM_DIGITS} --images 2 --out oval",
                ),
                "radius": Entry(
                    "Properties around records, at one radius.",
                    "properties:radius",
                    f"properties radius {_FROM_DIGITS} --epsilon 0.01 --count 2 --out r",
                ),
            },
        ),
        "label": Entry(
            "Find labels, with proofs, for instances that have none.",
            "check:label",
            "label net.onnx net.vnnlib --out labelled",
        ),
        "release": Entry(
            "Make a suite ready to publish: proofs, card, archive.",
            "audit:release",
            "release quick --author 'Ada Lovelace' --out released",
        ),
    },
    "Run": {
        "init": Entry(
            "Write a dokimos.toml, which `run` and `gate` take settings from.",
            "run:init",
            "init quick --verifier reference --out mine.toml",
        ),
        "run": Entry(
            "Run verifiers on suites; the same command again continues.",
            "run:run",
            "run quick --verifier reference --timeout 60 --out runs/first",
        ),
        "watch": Entry("Follow a campaign from another terminal.", "run:watch", "watch runs/first --once"),
        "edition": Entry(
            "Hold a competition: categories, tools, scores and pages.",
            commands={
                "init": Entry(
                    "Write edition.toml, which says everything about it.",
                    "edition:init",
                    "edition init cup --category quick --tool mine=reference",
                ),
                "run": Entry(
                    "Run every tool on every category; the same command again continues.",
                    "edition:run",
                    "edition run cup",
                ),
                "score": Entry("Judge and score what has been run.", "edition:score", "edition score cup"),
                "publish": Entry(
                    "Write its pages, results, tables and figures.",
                    "edition:publish",
                    "edition publish cup --out site",
                ),
            },
        ),
        "gate": Entry(
            "Run, judge, and fail if a verifier may not pass: for CI.",
            "gate:gate",
            "gate quick --verifier reference --junit gate.xml --out gated",
        ),
        "hunt": Entry(
            "Hunt for wrong answers without end, and make each one small.",
            "hunt:hunt",
            "hunt --verifier planted=ideal --budget 2s --out found",
        ),
        "reduce": Entry(
            "Make one wrong answer as small as it gets.",
            "hunt:reduce",
            "reduce net.onnx net.vnnlib --verifier planted=swapped-words --out small",
        ),
    },
    "Judge": {
        "check": Entry(
            "Prove every label of a suite, or laws, again, from the files.", "check:check", "check quick"
        ),
        "judge": Entry("Judge every answer of a campaign.", "judge:judge", "judge runs/first"),
        "report": Entry(
            "Write a page about campaigns, wrong answers first.",
            "judge:report",
            "report runs/first --html report.html",
        ),
        "explain": Entry(
            "Explain what makes each verifier time out.",
            "judge:explain",
            "explain runs/first --resamples 100",
        ),
        "profile": Entry(
            "Measure how difficult each instance is, and why.",
            "show:profile",
            "profile quick --samples 100",
        ),
        "audit": Entry("Report what is wrong with a benchmark.", "audit:audit", "audit quick"),
        "db": Entry(
            "Keep labels by what instances mean; find and export them.",
            commands={
                "add": Entry("Keep the labels of suites.", "edition:add", "db add quick"),
                "find": Entry("List labels.", "edition:find", "db find --unsat --operators Relu"),
                "export": Entry(
                    "Write a suite of labelled instances on this disk.",
                    "edition:export",
                    "db export quick --unsat --suite proven",
                ),
            },
        ),
        "show": Entry(
            "Show everything that is known about one instance.", "show:show", "show net.onnx net.vnnlib"
        ),
        "replay": Entry(
            "Evaluate a network at a point, exactly and in onnxruntime.",
            "check:replay",
            "replay net.onnx net.vnnlib 0.5,0.5",
            {"ignore_unknown_options": True},
        ),
    },
    "Models": {
        "law": Entry("Write laws for a model; test, prove and repair them.", commands=_LAW),
        "monotone": Entry(
            "Prove that a model rises or falls with features, or refute it.",
            "law_verify:monotone",
            "monotone trees.pkl --data ages.csv --feature age=1",
        ),
        "train": Entry(
            "Train a reference architecture, plainly or to be robust.",
            "properties:train",
            "train digits-fc --epochs 3 --evaluate 20 --out nets",
        ),
        "attack": Entry(
            "Search for counterexamples, each replayed exactly.",
            "hide:attack",
            "attack quick --attack units-leaky --budget 1s",
        ),
    },
    "Tools": {
        "verifiers": Entry(
            "List verifiers; install one, or see what is wrong with it.",
            "gate:verifiers",
            "verifiers",
            commands={
                "install": Entry(
                    "Install a pinned version into an environment of its own.",
                    "gate:install",
                    "verifiers install reference",
                ),
                "doctor": Entry(
                    "Report what is wrong with a verifier on this machine.",
                    "gate:doctor",
                    "verifiers doctor reference",
                ),
            },
        ),
        "families": Entry(
            "List the families of instances; with a name, its knobs.",
            "generate:families",
            "families exclusive-pairs",
        ),
        "suites": Entry("List the shipped suites.", "generate:suites", "suites"),
        "data": Entry(
            "List data sets; get one.",
            "generate:data",
            "data",
            commands={"get": Entry("Download a data set.", "generate:get", "data get digits")},
        ),
        "completion": Entry(
            "Print the script that lets a shell complete names.", "options:completion", "completion bash"
        ),
    },
}


class _Loaded(MutableMapping[str, Any]):
    """The commands of a group, each built when it is first asked for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = entries
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(name, self.entries[name])
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class _Group(TyperGroup):
    """A group whose help and completion come from the table, without loading a command."""

    headings: Mapping[str, Mapping[str, Entry]]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands under their headings, each with one line that is never cut."""
        for heading, entries in self.headings.items():
            with formatter.section(heading):
                widest = max(len(name) for each in self.headings.values() for name in each)
                formatter.write_dl([(name.ljust(widest), one.about) for name, one in entries.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The names that begin like this, and options."""
        from typer._click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=one.about)
            for entries in self.headings.values()
            for name, one in entries.items()
            if name.startswith(incomplete)
        ]
        return found + super(TyperGroup, self).shell_complete(ctx, incomplete)


def _build(name: str, entry: Entry) -> Any:
    epilog = f"\b\nExample:\n  dokimos {entry.example}" if entry.example else None
    if entry.commands:
        doing = entry.function() if entry.place else _nothing
        return _group(name, doing, {"Commands": entry.commands}, help=entry.about, epilog=epilog)
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    made.command(name, context_settings=dict(entry.loose), epilog=epilog)(entry.function())
    command = get_command(made)
    assert isinstance(command, TyperCommand)
    return command


def _group(name: str, doing: Any, headings: Mapping[str, Mapping[str, Entry]], **about: Any) -> Any:
    alone = doing not in (_nothing, _root)
    made = typer.Typer(
        name=name,
        cls=_Group,
        no_args_is_help=not alone,
        invoke_without_command=alone,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        **about,
    )
    made.callback()(doing)
    group = get_command(made)
    assert isinstance(group, _Group)
    group.headings = headings
    group.commands = _Loaded({name: one for each in headings.values() for name, one in each.items()})
    return group


def _nothing() -> None:
    pass


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dokimos {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Puts neural-network verifiers and ML models to the test with answers that are proven."""
    from dokimos.cli.output import remarks_shown

    context.with_resource(remarks_shown())


@cache
def command_line() -> Any:
    """The whole command line; a process that runs several commands builds each once."""
    return _group("dokimos", _root, COMMANDS)
