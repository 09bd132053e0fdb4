"""The page on guided training, in Markdown, and its figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dokimos.reports.figures.frame import (
    Area,
    AxisScale,
    Figure,
    Sheet,
    at,
    draw_axes,
    draw_keys,
    linear,
    series_class,
)
from dokimos.reports.render import drawing_style
from dokimos_studies.laws.guided_records import Arm, GuidedRecords, PhaseRecord
from dokimos_studies.laws.guided_table import LEVEL, CurvePoint, Difference, PairedRuns, curve, differences

_HEAD = """# Guided training of a policy for LunarLander

`dokimos-studies law-guide` writes this page, its figure, and a JSON file with the result of every test. It
repeats the feasibility study of Christakis, Eniser, Hoffmann, Singla, Wüstholz: *Specifying and Testing
k-Safety Properties for Machine-Learning Models* (2022), Table 2 and Figure 5.

**Training.** PPO of stable-baselines3 with its default settings and ReLU, in rollouts of 2,048 steps
(16 games side by side, 128 steps each). After every five rollouts the policy is tested on 50 states,
drawn from 500, against the law `lunar_lander/relax`: with the ground lower everywhere, it wins no fewer
of ten games. A state in which it wins fewer is a *bug*. *Guided* training keeps these states, with the
lower ground, and starts later games from them: half from the latest test, half from older ones, with a
probability that rises by 0.15 every 102,400 steps, up to 0.6. *Normal* training is tested in the same
way and ignores the result. Both arms of a seed start from the same weights and run the same tests.

**Counting.** Bugs are counted on 50 *held-out* states, which training never starts from, with the same
games for every policy. The reward is the mean over 50 games of gymnasium. A policy that always crashes
has no bugs, so the table leaves out policies that earn less than 0. `dokimos law fuzz` found all
states, with gymnasium's heuristic as the policy. The paper does not say how many states it tests or
which states it counts on, so its numbers (2 to 34 bugs) cannot be compared directly.
"""
_WIDTH, _HEIGHT = 760, 220
#: The first policies crash, at -1,000 and less: drawn to scale, they would leave no room for the others.
_LEAST_REWARD = -400.0
_BAND = ".figure .band{opacity:.16}"


def markdown(
    records: GuidedRecords, pairs: Sequence[PairedRuns], *, figure: str, seeds: int, steps: int, phases: int
) -> str:
    """The page; `seeds`, `steps` and `phases` are what was asked for."""
    lines = [_HEAD, *_progress(records, seeds=seeds, steps=steps, phases=phases)]
    if not pairs:
        return "\n".join([*lines, "\nNo seed has results for both arms yet.\n"])
    lines += ["\n## Policies with the fewest bugs, and with the most reward\n", *_table(pairs)]
    lines += ["\n## Guided minus normal\n", *_differences(differences(pairs), pairs)]
    lines += ["\n## Reward and bugs over time\n", f"![Reward and bugs over the steps]({figure})\n"]
    many = any(len(pair.normal) > 0 for pair in pairs) and len(pairs) > 1
    shade = (
        f"shaded: {100 * LEVEL:.0f} % intervals (Student's t over the seeds)" if many else "one seed only"
    )
    lines.append(f"Means over the seeds that have got that far; {shade}.")
    lines.append(f"What lies below a reward of {_LEAST_REWARD:.0f} is drawn there.\n")
    return "\n".join(lines)


def _progress(records: GuidedRecords, *, seeds: int, steps: int, phases: int) -> list[str]:
    asked = f"Asked for: {seeds} seed{'s' * (seeds != 1)} of {steps:,} steps, with {phases} tests per run."
    runs = [(seed, arm, records.run(seed, arm)) for seed in range(seeds) for arm in Arm]
    whole = sum(len(run) >= phases for *_, run in runs)
    cpu = sum(run[-1].cpu_seconds for *_, run in runs if run)
    until_now = " so far" * (whole < len(runs))
    lines = [f"{asked} Finished: {whole} of {len(runs)} runs, in {cpu / 60:,.0f} CPU-minutes{until_now}."]
    part = [
        f"seed {seed} {arm.value} ({len(run)} of {phases} tests)"
        for seed, arm, run in runs
        if 0 < len(run) < phases
    ]
    if part:
        lines.append(
            f"Begun: {', '.join(part)}; rows below compare the steps that both runs of a seed have."
        )
    return lines


def _table(pairs: Sequence[PairedRuns]) -> list[str]:
    kinds = [f"{arm.value}: {what}" for arm in Arm for what in ("bugs", "reward")]
    heads = [f"{policy}, {kind}" for policy in ("fewest bugs", "most reward") for kind in kinds]
    lines = [_row(["seed", "steps", *heads]), f"|{'--:|' * 10}"]
    for pair in pairs:
        normal, guided = pair.policies
        shown = [normal.fewest_bugs, guided.fewest_bugs, normal.most_reward, guided.most_reward]
        cells = [cell for record in shown for cell in _cells(record)]
        lines.append(_row([str(pair.seed), f"{pair.steps:,}", *cells]))
    return lines


def _cells(record: PhaseRecord | None) -> tuple[str, str]:
    return ("–", "–") if record is None else (str(record.held_out), f"{record.reward:.1f}")


def _differences(found: Sequence[Difference], pairs: Sequence[PairedRuns]) -> list[str]:
    if not found:
        return ["There is no pair in which both runs have a policy that earns at least 0."]
    level = f"{100 * LEVEL:.0f} % interval"
    lines = [_row(["", "pairs", "mean difference", level]), "|---|--:|--:|--:|"]
    for each in found:
        between = f"{each.interval.low:.1f} to {each.interval.high:.1f}" if each.interval else "–"
        lines.append(_row([each.column, str(each.pairs), f"{each.mean:.1f}", between]))
    if len({pair.steps for pair in pairs}) > 1:
        lines.append("\nThese means include pairs of different lengths.")
    if all(each.interval and each.interval.low <= 0 <= each.interval.high for each in found):
        lines.append("\nEvery interval holds 0: these seeds do not show that guidance helps or harms.")
    return lines


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def figure(pairs: Sequence[PairedRuns]) -> str:
    """Reward and bugs over the steps, with intervals: the content of an SVG file."""
    sheet = Sheet()
    keys = [(f"{arm.value} training", None, series_class(number), True) for number, arm in enumerate(Arm)]
    top = draw_keys(sheet, keys, x=6, y=18, right=_WIDTH - 6) + 34
    for name, of, least in (
        ("mean reward", "reward", _LEAST_REWARD),
        ("bugs on 50 held-out states", "held_out", 0.0),
    ):
        area = Area(left=52, top=top, right=_WIDTH - 30, bottom=top + _HEIGHT)
        _draw(sheet, area, name, {arm: curve(pairs, arm, of) for arm in Arm}, least)
        top = area.bottom + 66
    words = "Mean reward and mean number of bugs over the steps of normal and of guided training."
    drawn = Figure("guided", "Guided and normal training", words, _WIDTH, int(top - 20), sheet.body)
    return drawn.standalone(drawing_style() + _BAND)


def _draw(sheet: Sheet, area: Area, name: str, curves: dict[Arm, list[CurvePoint]], least: float) -> None:
    points = [point for each in curves.values() for point in each]
    ends = [end for point in points if point.interval for end in (point.interval.low, point.interval.high)]
    x = linear([0.0, *(float(point.steps) for point in points)], area.left, area.right, steps=8)
    shown = [max(least, value) for value in (*(point.mean for point in points), *ends)]
    y = linear(shown, area.bottom, area.top)
    draw_axes(sheet, area, x.ticks, y.ticks, x_title="steps", y_title=name)
    for number, line in enumerate(curves.values()):
        kind = series_class(number)
        _draw_band(sheet, line, x, y, kind)
        places = [f"{at(x(point.steps))} {at(y(point.mean))}" for point in line]
        sheet.path("M" + "L".join(places), f"line {kind}")


def _draw_band(sheet: Sheet, line: Sequence[CurvePoint], x: AxisScale, y: AxisScale, kind: str) -> None:
    known = [(point.steps, point.interval) for point in line if point.interval is not None]
    if known:
        upper = [f"{at(x(steps))} {at(y(interval.high))}" for steps, interval in known]
        lower = [f"{at(x(steps))} {at(y(interval.low))}" for steps, interval in reversed(known)]
        sheet.path(f"M{'L'.join([*upper, *lower])}Z", f"area band {kind}")
