"""`dokimos-studies law-train`: trains the network or the tree of a case study."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos_studies.command_line import counted
from dokimos_studies.laws.catalogue import STUDIES, find_study


@dataclass(frozen=True)
class TrainedModel:
    """The file of a trained model, and its quality in words."""

    path: Path
    quality: str


def train_study(study: str, out: str | Path, *, kind: str = "network", seed: int = 0) -> TrainedModel:
    """Train the network or the tree of a case study: `dokimos-studies law-train`.

    `out` ends in .onnx for a network and in .json for a tree. The data is fetched from a registry, or
    generated.
    """
    path = Path(out)
    found = find_study(study, kind)
    suffix = ".json" if kind == "tree" else ".onnx"
    if path.suffix != suffix:
        raise InputError(f"{path}: a {kind} is written to a file that ends in {suffix}.")
    expect_writable(path, what=kind, example=f"{study}{suffix}")
    content = found.train(seed)
    quality = found.quality(content)
    write_whole(path, content, make_folder=False)
    return TrainedModel(path, quality)


def main() -> None:
    """Train one model and say how good it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", help=", ".join(STUDIES))
    parser.add_argument("--out", type=Path, required=True, help=".onnx for a network, .json for a tree")
    parser.add_argument("--kind", default="network", help="network or tree")
    parser.add_argument("--seed", type=counted, default=0, help="the seed of the training")
    given = parser.parse_args()
    trained = train_study(given.study, given.out, kind=given.kind, seed=given.seed)
    print(f"{trained.path}: trained; {trained.quality}")
