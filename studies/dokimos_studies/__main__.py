"""`dokimos-studies COMMAND …`: one command for each table. Bad input is one sentence and exit code 2."""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

from dokimos.core.errors import DokimosError
from dokimos.core.readable import unknown_name

#: The module of each command, which has a function `main`, and what it makes.
COMMANDS = {
    "law-study": ("laws.study", "violations of the laws of the case studies, beside the paper's counts"),
    "law-train": ("laws.training", "the network or the tree of a case study"),
    "law-guide": ("laws.guide", "policies trained with and without the violations that tests find"),
    "law-tables": ("laws.tables", "which laws of the case studies are proven, before and after repair"),
    "claims": ("veristress.claims", "what the published runs of VeriStress-GT say of its claims"),
    "networks": ("veristress.networks", "the published networks, rebuilt, as a suite"),
    "labels": ("veristress.labels", "the published labels: proven, refuted or open"),
    "figures": (
        "veristress.figures",
        "the paper's Figures 2 to 6 and Tables 2 and 4, for your own campaigns",
    ),
    "table1": ("veristress.table1", "the ablation of polynomial networks, as a suite and as a table"),
    "knobs": ("veristress.knobs", "what every knob of Table 5 moves, beside the published runs"),
    "again": ("veristress.again", "the published study beside our own runs"),
    "hardness": ("veristress.hardness", "whether anything adds to the five components"),
    "state": ("state", "what verifiers get wrong, and where they stop"),
    "design": ("design", "the knobs of a family for an instance with a given profile"),
    "ladder": ("ladder", "at which value of each knob verifiers stop solving"),
    "soundness": ("soundness", "what verifiers say about trained counterexamples"),
    "ablation": ("ablation", "hiding by training, without each of the paper's two ideas"),
    "profiles": ("profiles", "profiles of published benchmarks"),
    "published-answers": ("published_answers", "benchmarks and their published answers, audited"),
    "published-totals": ("published_totals", "scores of past competitions, added up again"),
    "published-properties": ("published_properties", "boxes and radii of published networks, reproduced"),
    "planted": ("planted", "which suites catch which planted bugs, for studies/results/planted.md"),
    "orders": (
        "orders",
        "the orders in which budgets of `dokimos gate` take the instances of shipped suites",
    ),
    "depth": ("depth", "the figure of docs/families.md: margins and bounds as depth grows"),
    "trophies": ("trophies", "the distinct wrong answers of recorded hunts, each in full"),
    "narrow": ("narrow", "an instance asked again, with the box cut down around its witness"),
}


def run() -> NoReturn:
    """Run the command that was given and exit with its code; 2 for bad input, 130 for an interruption."""
    # Several threads add in another order and so round differently; this comes before numpy is loaded.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print("usage: dokimos-studies COMMAND …\n")
        print("\n".join(f"  {name:<{width}}  {made}" for name, (_, made) in COMMANDS.items()))
        sys.exit(0 if len(sys.argv) > 1 else 2)
    name = sys.argv.pop(1)
    sys.argv[0] = f"dokimos-studies {name}"
    try:
        if name not in COMMANDS:
            raise unknown_name("command", name, list(COMMANDS))
        code = importlib.import_module(f"dokimos_studies.{COMMANDS[name][0]}").main() or 0
    except DokimosError as error:
        print(f"{sys.argv[0]}: {error}", file=sys.stderr)
        code = 2
    except OSError as error:
        print(f"{sys.argv[0]}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print(f"{sys.argv[0]}: interrupted; run the same command again to continue", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    run()
