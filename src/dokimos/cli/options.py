"""Arguments and options that several commands share, and the names that a shell completes.

A shell calls `dokimos` itself, with an environment variable (`_DOKIMOS_COMPLETE`) that names the shell.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dokimos.api.campaigns import SettledRun


class Shell(Enum):
    """The shells that have a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to write the script for.")],
) -> None:
    """Print the script that lets a shell complete commands, options and names.

    For bash, put `eval "$(dokimos completion bash)"` into ~/.bashrc; zsh and fish work the same way.
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="dokimos", complete_var="_DOKIMOS_COMPLETE", shell=shell.value)
    typer.echo(script)


def _names(kind: str, *, several: bool = False) -> Callable[[str], list[str]]:
    """What completes a word to the names of a kind; with `several`, the last in a list with commas."""

    def names(incomplete: str) -> list[str]:
        from dokimos.api.arguments import known_names

        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in known_names(kind) if name.startswith(last)]

    return names


shipped_suite_names = _names("suite")
family_names = _names("family")
verifier_names = _names("verifier")
data_set_names = _names("data set")
attack_names = _names("attack", several=True)
rule_set_names = _names("rule set", several=True)


def suite_names(incomplete: str) -> list[str]:
    """Shipped suites, and folders."""
    return shipped_suite_names(incomplete) + _folders(incomplete)


def _folders(incomplete: str) -> list[str]:
    parent, _, start = incomplete.rpartition("/")
    where = Path(parent or ("/" if incomplete.startswith("/") else "."))
    try:
        inside = sorted(path.name for path in where.iterdir() if path.is_dir())
    except OSError:
        return []
    lead = incomplete[: len(incomplete) - len(start)]
    return [
        f"{lead}{name}" for name in inside if name.startswith(start) and (start or not name.startswith("."))
    ]


# Arguments and options that several commands on suites and campaigns share


SuiteName = Annotated[
    str,
    typer.Argument(help="A suite's folder, or the name of a shipped suite.", autocompletion=suite_names),
]
MovedSuites = Annotated[
    list[Path] | None, typer.Option("--suite", help="The folder of a suite that has moved; repeatable.")
]
Families = Annotated[
    str | None,
    typer.Option(
        help="Group into families by `network`, or by a regular expression, such as 'prop_([0-9]+)'."
    ),
]
Jobs = Annotated[int | None, typer.Option(help="How many processes to use.", min=1)]
PluginProofs = Annotated[
    bool, typer.Option("--plugin-proofs", help="Also trust kinds of proof that installed packages add.")
]


# Options that all commands that run verifiers share


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A dokimos.toml with suites, verifiers and limits (default: the one in this folder).",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Run only this instance, or those that a pattern such as 'pairs-*' matches; repeatable."
    ),
]


#: One option for each field of `RunSettings`: its name there, and what it takes.
_RUN_OPTIONS: dict[str, tuple[str, Any]] = {
    "timeout": (
        "timeout_seconds",
        Annotated[
            float | None,
            typer.Option(help="Seconds for each run (default: the suite's own limits).", min=0.001),
        ],
    ),
    "memory": (
        "memory_bytes",
        Annotated[str | None, typer.Option(help="Memory for each run, such as 512MB (default: 4GB).")],
    ),
    "cpu": (
        "cpu_seconds",
        Annotated[
            float | None,
            typer.Option(help="Seconds of CPU time for each run, over all its processes.", min=0.001),
        ],
    ),
    "threads": (
        "threads",
        Annotated[
            int | None,
            typer.Option(help="Threads of numerical libraries in each run (default: 1).", min=1),
        ],
    ),
    "jobs": (
        "jobs",
        Annotated[int | None, typer.Option(help="How many runs at a time (default: 1).", min=1)],
    ),
    "repeat": (
        "repeat",
        Annotated[
            int | None,
            typer.Option(help="How many times to run each verifier on each instance (default: 1).", min=1),
        ],
    ),
    "dask": (
        "dask",
        Annotated[
            str | None,
            typer.Option(
                help="Run on a Dask cluster, such as tcp://scheduler:8786, instead of on this machine."
            ),
        ],
    ),
    "pass_env": (
        "pass_env",
        Annotated[
            list[str] | None,
            typer.Option(
                "--pass-env",
                metavar="NAME",
                help="Pass this environment variable on to verifiers; repeatable.",
            ),
        ],
    ),
    "trust": (
        "trust",
        Annotated[
            bool,
            typer.Option(
                "--trust", help="Run verifiers as they are: not isolated, scripts without a guard."
            ),
        ],
    ),
}
Command = Callable[..., None]
#: The run settings that a command was given; `run_options` puts their options in its place.
Given = dict[str, Any] | None


def run_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the options of `RunSettings` (all, or those named) in the place of its `given`.

    The command gets what was given, by the fields' names and in their types.
    """
    chosen = {name: _RUN_OPTIONS[name] for name in names or _RUN_OPTIONS}

    def decorated(command: Command) -> Command:
        @wraps(command)
        def call(**words: Any) -> None:
            from dokimos.core.readable import parse_bytes

            values = {field: words.pop(name) for name, (field, _) in chosen.items()}
            given = {field: value for field, value in values.items() if value}
            if (memory := values.get("memory_bytes")) is not None:
                given["memory_bytes"] = parse_bytes(memory)
            command(**words, given=given)

        own = inspect.signature(command, eval_str=True).parameters
        options = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if name == "trust" else None,
                annotation=annotation,
            )
            for name, (_, annotation) in chosen.items()
        ]
        taken = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own.values()]
        place = list(own).index("given")
        taken[place : place + 1] = options
        call.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        call.__annotations__ = {each.name: each.annotation for each in taken}
        return call

    return decorated


def settled(
    config: Path | None,
    suites: list[str] | None,
    verifiers: list[str] | None,
    *,
    given: Mapping[str, Any],
    budget: str | None = None,
    unused: tuple[str, ...],
) -> SettledRun:
    """What to run. What the configuration file adds to the command line is printed before the first run."""
    from dokimos.api.campaigns import added_in_words, find_config, settle_run
    from dokimos.cli.output import say
    from dokimos.core.readable import parse_seconds

    found, remark = find_config(config)
    run = settle_run(
        found,
        suites=suites or (),
        verifiers=verifiers or (),
        given=given,
        budget_seconds=None if budget is None else parse_seconds(budget),
        unused=unused,
    )
    for line in filter(None, (remark, added_in_words(found, run))):
        say(line)
    return run


# Radii, weights and ranges of values, as people write them on the command line


def parse_number(text: str) -> float:
    """Read a number such as 2/255 or 0.03. Raises InputError if it is not a number."""
    from dokimos.api.suites import parse_decimal
    from dokimos.core.errors import InputError

    top, slash, bottom = (part.strip() for part in text.partition("/"))
    try:
        return float(parse_decimal(top) / parse_decimal(bottom) if slash else parse_decimal(top))
    except (InputError, ZeroDivisionError, OverflowError):
        raise InputError(f"{text[:40]!r} is not a number; write it like 2/255 or 0.03.") from None


def parse_numbers(text: str) -> tuple[float, ...]:
    """Read numbers such as 1/3,2/3. Raises InputError if one is not a number."""
    return tuple(parse_number(part) for part in text.split(","))


def parse_limits(text: str) -> tuple[float, float] | None:
    """Read a range such as 0,1, or none. Raises InputError if it is not a range."""
    from dokimos.core.errors import InputError

    if text == "none":
        return None
    ends = parse_numbers(text)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise InputError(f"--limits {text!r} is not a range; write it like 0,1, or none.")
    return ends[0], ends[1]


def show_radius(radius: float) -> str:
    """A radius, and how many steps of 8-bit pixels it is; only the latter if that is a whole number.

    An infinite one, where nothing breaks at any radius, is a dash.
    """
    steps = 255 * radius
    if steps == float("inf"):
        return "-"
    if abs(steps - round(steps)) < 1e-9:
        return f"{round(steps)}/255"
    return f"{radius:.4g} ({steps:.3f}/255)"


# Arguments and options that several commands of `dokimos law` share


Laws = Annotated[
    list[Path],
    typer.Argument(
        help="Files of laws (.law, .nom), folders of them, or a shipped domain: compas, german_credit."
    ),
]
DomainOption = Annotated[
    str | None, typer.Option("--domain", help="The domain: a Python file, or a shipped one's name.")
]
NoCode = Annotated[
    bool, typer.Option("--no-code", help="Refuse laws and domains that contain Python code.")
]
Free = Annotated[
    str, typer.Option(help="With --rows: features that may have any value, separated by commas.")
]
Constrained = Annotated[
    bool, typer.Option("--constraints/--no-constraints", help="Whether to assume the domain's CONSTRAINTS.")
]
