"""What a section of a report is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from inspect import getfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, final

from markupsafe import Markup

from dokimos.core.plugins import PluggableRegistry
from dokimos.core.tables import TableRows
from dokimos.reports.figures.frame import Figure
from dokimos.reports.findings import Findings

if TYPE_CHECKING:
    from jinja2 import Template
    from rich.console import RenderableType


R = TypeVar("R")


class Command(Enum):
    """The commands that print sections on the terminal."""

    JUDGE = "judge"
    EXPLAIN = "explain"


class Section(ABC, Generic[R]):
    """One section of a report, with everything about it: rows, page, tables, figures, terminal.

    **Adding a section takes two files**: a module in this folder with a subclass, and one line in the
    registry below, whose order is that of the page. Nothing else has to change: `dokimos report --html`,
    `--csv` and `--png`, `dokimos judge` and `dokimos explain`
    take their sections from the registry. A section that shows how often each verifier was right:

    .. code-block:: python

        @dataclass(frozen=True)
        class ShareRow:
            verifier: str
            share: float


        class Shares(Section[tuple[ShareRow, ...]]):
            name = "shares"
            title = "How often each verifier was right"
            link = "Shares"
            template = "{% for row in rows %}<p>{{ row.verifier }}: {{ row.share }}</p>{% endfor %}"

            def rows(self, findings: Findings) -> tuple[ShareRow, ...]:
                ...

            def tables(self, rows: tuple[ShareRow, ...]) -> Iterable[TableRows]:
                yield table("shares", [ShareRow], [(row,) for row in rows])

            def lines(self, rows: tuple[ShareRow, ...]) -> Iterable[RenderableType]:
                yield from (Text(f"{row.verifier}: {row.share:.0%}") for row in rows)

    **Rows first.** `rows` turns the findings into frozen dataclasses that hold all of the section's content
    and none of its looks; tests look at these. It is called once for each output, gets the judgements in
    the order of the page, and must return equal rows for equal findings: the same campaign gives the same
    page, byte for byte. Return None if the section does not apply (no rule set was requested, no operator
    was tested): it then appears nowhere. If it applies but is empty ("no answer is wrong"), return empty
    rows and let the template say so. If data is missing that a command could still gather, let `lacks` name
    that command; the page then folds the section into that sentence. Pass text from outside (names,
    reasons, logs) through `dokimos.core.readable.printable` here, and take the names of runs from
    `Findings.naming`, so that all sections use the same ones.

    **Everything else takes these rows.** The other methods are optional: a section without one of them
    shows nothing there.

    - The page shows `template`, or the file `<name>.html.jinja` beside the module, below the heading.
      It is a Jinja template; it escapes what it prints, and an undefined name in it is an error. It can use
      `rows`, whatever `view` returns, and the filters and macros of `reports/layout`. The `<section>`
      element, its heading and the link at the top of the page are added for you. Styles and scripts
      that only this section needs go into `<name>.css` and `<name>.js` beside the module. The script can
      use the helpers of `layout/page.js`; nothing may be loaded from elsewhere (the page's content
      security policy forbids it).
    - `tables` returns the tables of `--csv`: one for each kind of row, even if there are no rows, so that
      the file has its heading. Columns are the fields of the rows (`core/tables.py`). A section should have
      at least one: readers of the page want to compute with its numbers. Names are unique among sections.
    - `figures` returns the figures of `--png`, drawn with `reports/figures`; the template gets the same
      figures from `view`. Their names must be unique as well: they name the files.
    - `lines` returns what the command `printed_by` prints on the terminal, from top to bottom. A `Text` is
      never wrapped, so that a command in it can be copied; anything else is fitted to the window.
    """

    name: ClassVar[str]
    """The name in the registry and of the files beside the module; with dashes, the anchor on the page."""

    title: ClassVar[str]
    """The heading."""

    link: ClassVar[str]
    """The heading in a word or two, for the links at the top of the page."""

    template: ClassVar[str | None] = None
    """The template as text, if it is not a file."""

    printed_by: ClassVar[Command] = Command.JUDGE
    """Which command prints `lines`."""

    @abstractmethod
    def rows(self, findings: Findings) -> R | None:
        """All of the section's content; None if the section does not apply."""

    def view(self, rows: R) -> Mapping[str, Any]:
        """What the template gets besides `rows`: figures, and whatever a template cannot compute."""
        return {}

    def lacks(self, rows: R) -> str:
        """Why there is nothing to show, in a sentence with the `command` that changes this.

        Empty if there is something; otherwise the page shows this sentence in place of the section.
        """
        return ""

    def tables(self, rows: R) -> Iterable[TableRows]:
        """The tables of `--csv`."""
        return ()

    def figures(self, rows: R) -> Iterable[Figure]:
        """The figures of `--png`."""
        return ()

    def lines(self, rows: R) -> Iterable[RenderableType]:
        """What the terminal shows."""
        return ()

    @final
    @property
    def anchor(self) -> str:
        """What links to this section lead to."""
        return self.name.replace("_", "-")

    @final
    def html(self, rows: R) -> Markup:
        """The content below the heading; empty if there is no template."""
        found = _template(type(self))
        return Markup("") if found is None else Markup(found.render(rows=rows, **self.view(rows)))

    @final
    def asset(self, suffix: str) -> str:
        """The text of `<name><suffix>` beside the module; empty if there is no such file."""
        path = _beside(type(self), suffix)
        return path.read_text(encoding="utf-8") if path.is_file() else ""


def _beside(section: type[Section[Any]], suffix: str) -> Path:
    return Path(getfile(section)).with_name(section.name + suffix)


@cache
def _template(section: type[Section[Any]]) -> Template | None:
    from dokimos.reports.render import environment

    text = section.template
    path = _beside(section, ".html.jinja")
    if text is None and path.is_file():
        text = path.read_text(encoding="utf-8")
    return None if text is None else environment().from_string(text)


# All sections, in the order of the page; add one line here for a new one


SECTIONS: PluggableRegistry[Section[Any]] = PluggableRegistry(
    "section",
    {
        "families": "dokimos.reports.sections.families:Families",
        "changes": "dokimos.reports.sections.changes:Changes",
        "penalties": "dokimos.reports.sections.published:Penalties",
        "wrong_answers": "dokimos.reports.sections.wrong_answers:WrongAnswers",
        "files": "dokimos.reports.sections.published:Files",
        "cactus": "dokimos.reports.sections.families:Cactus",
        "reasons": "dokimos.reports.sections.reasons:Reasons",
        "breaking": "dokimos.reports.sections.reasons:Breaking",
        "support": "dokimos.reports.sections.support:OperatorSupport",
        "rules": "dokimos.reports.sections.published:Rules",
        "instances": "dokimos.reports.sections.instances:Instances",
    },
    group="dokimos.sections",
    expects=Section,
)


def sections() -> tuple[Section[Any], ...]:
    """Every section, in the order of the page."""
    return tuple(section for _, section in SECTIONS.items())


def filled_sections(findings: Findings) -> Iterator[tuple[Section[Any], Any]]:
    """Every section that applies to `findings`, with its rows."""
    for section in sections():
        rows = section.rows(findings)
        if rows is not None:
            yield section, rows


# Sections on the terminal


def terminal_lines(findings: Findings, command: Command) -> Iterator[RenderableType]:
    """What `command` prints about `findings`: the lines of its sections, in the order of the page."""
    for section in sections():
        if section.printed_by is command and (rows := section.rows(findings)) is not None:
            yield from section.lines(rows)


def printed_tables(findings: Findings, command: Command) -> Iterator[TableRows]:
    """The tables behind what `command` prints, in the same order."""
    for section in sections():
        if section.printed_by is command and (rows := section.rows(findings)) is not None:
            yield from section.tables(rows)
