"""How many instances could have shown that a tool's proofs are wrong: its own attack leaves few.

A wrong `unsat` is only possible where a tool's attack does not find the counterexample. Where it does, the
tool answers `sat`, whatever its bounds are worth; with its attack switched off, its proofs are tested there
too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from dokimos.core.readable import printable
from dokimos.judging.verdicts import Judgement
from dokimos.suites.instance import Answer, Label
from dokimos.verifiers.base import NO_ATTACK

#: Answers after which nothing is known about a tool's proofs: it did not get that far.
_NOT_REACHED = (Answer.UNSUPPORTED, Answer.ERROR, Answer.MEMOUT)
_Key = tuple[str, str]
#: How the line ends if no run had the attack off, by whether there is a switch.
_WITHOUT = {
    None: "; it was not asked with its attack off.",
    False: "; it has no switch for its attack.",
    True: ".",
}


@dataclass(frozen=True)
class Power:
    """One verifier on instances that have a counterexample.

    Of `counterexamples` instances, `found` were answered `sat`, `unanswered` not at all (unsupported, an
    error, no memory), and the others, `tested`, had to be refused by its proofs, as far as these came: in
    `late` of them they did not end in time. `tested_without_attack`
    counts the instances that tested its proofs in either way; None if it was not asked without its attack.
    `is_quiet`: its attack was off all the time. `has_switch`: whether there is a switch (None: not known).
    """

    verifier: str
    counterexamples: int
    found: int
    unanswered: int
    tested: int
    late: int = 0
    tested_without_attack: int | None = None
    is_quiet: bool = False
    has_switch: bool | None = None

    @property
    def in_words(self) -> str:
        """The line of power."""
        who, total = printable(self.verifier), _several(self.counterexamples, "counterexample")
        left = f" and {self.unanswered} not answered" if self.unanswered else ""
        late = f" ({self.late} until its time was up)" if self.late else ""
        tested = f"{_several(self.tested, 'instance')} tested its proofs{late}"
        if self.is_quiet:
            return f"{who}: its attack was off; {tested}{left}."
        said = f"{who}: {self.found} of {total} found by its own attack{left}: {tested}"
        if self.tested_without_attack is not None:
            return f"{said}; with the attack off, {self.tested_without_attack} did."
        return said + _WITHOUT[self.has_switch]


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def power_of(
    judgements: Iterable[Judgement], *, following: Collection[str] | None = None
) -> tuple[Power, ...]:
    """The power of runs on instances that are labelled `sat`, for each verifier that has such runs.

    The runs of NAME:no-attack count with those of NAME, if it ran too. `following` names all that would
    have been asked without their attack, if that is known.
    """
    answers: dict[str, dict[_Key, list[Judgement]]] = {}
    for judgement in judgements:
        own = answers.setdefault(judgement.record.verifier, {})
        if judgement.label is Label.SAT:
            own.setdefault((judgement.record.suite, judgement.record.instance), []).append(judgement)
    return tuple(
        _power(
            verifier,
            own,
            answers.get(f"{verifier}{NO_ATTACK}"),
            None if following is None else f"{verifier}{NO_ATTACK}" in following,
        )
        for verifier, own in answers.items()
        if own and not (verifier.endswith(NO_ATTACK) and verifier.removesuffix(NO_ATTACK) in answers)
    )


def _power(
    verifier: str,
    own: dict[_Key, list[Judgement]],
    quiet: dict[_Key, list[Judgement]] | None,
    has_switch: bool | None,
) -> Power:
    is_quiet = verifier.endswith(NO_ATTACK)
    found = set() if is_quiet else {key for key, runs in own.items() if any(map(_is_found, runs))}
    unanswered = {key for key, runs in own.items() if key not in found and not _is_reached(runs)}
    tested = own.keys() - found - unanswered
    late = sum(all(run.record.answer is Answer.TIMEOUT for run in own[key]) for key in tested)
    both = None
    if quiet is not None:
        both = len(tested | {key for key, runs in quiet.items() if _is_reached(runs)})
    counts = len(own), len(found), len(unanswered), len(tested), late
    return Power(verifier, *counts, both, is_quiet, has_switch)


def _is_found(judgement: Judgement) -> bool:
    return judgement.record.answer is Answer.SAT and not judgement.verdict.is_wrong


def _is_reached(runs: Sequence[Judgement]) -> bool:
    return any(run.record.answer not in _NOT_REACHED for run in runs)
