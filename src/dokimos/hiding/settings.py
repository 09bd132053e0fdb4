"""The settings of `hide`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError

TIERS = ("lock", "trained")
FILTERS = ("quick", "paper", "none")
STARTS = ("planted", "random")


@dataclass(frozen=True, kw_only=True)
class HideSettings:
    """Which network hides counterexamples, where, and how; validated on creation."""

    tier: str = "lock"
    architecture: str = "cnn1"
    input_shape: tuple[int, ...] = (1, 5, 5)
    epsilon: float = 0.2
    points: int = 10
    seed: int = 0
    scale: float = 0.25
    bits: int | None = None
    weight: int = 7
    model: str = ""
    data: str = ""
    filter: str = "quick"
    start: str = "planted"
    epochs: int = 400
    prove_seconds: float = 5.0
    timeout_seconds: float = 60.0
    two_sided: bool = True
    sliding: bool = True

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise InputError(f"There is no tier {self.tier!r}; choose one of {', '.join(TIERS)}.")
        if self.filter not in FILTERS:
            raise InputError(f"There is no filter {self.filter!r}; choose one of {', '.join(FILTERS)}.")
        if self.start not in STARTS:
            raise InputError(f"There is no start {self.start!r}; choose one of {', '.join(STARTS)}.")
        if bool(self.model) != bool(self.data):
            raise InputError("Your own network needs your own points: give both --model and --data.")
        if self.model and self.tier != "lock":
            raise InputError("Only a lock can be added to your own network; leave out --tier.")
        if not 1 <= self.points <= 1000:
            raise InputError(f"The number of points must be between 1 and 1000, not {self.points}.")
        if self.seed < 0:
            raise InputError(f"The seed must be 0 or more, not {self.seed}.")
        if self.bits is not None and not 1 <= self.bits <= 2000:
            raise InputError(f"A lock has between 1 and 2000 bits, not {self.bits}.")
        if not 0 < self.timeout_seconds < 1e9 or not 0 < self.prove_seconds < 1e6:
            raise InputError(
                "Times must be positive numbers of seconds, below a billion (for a proof, a million)."
            )

    def as_recipe(self) -> dict[str, Any]:
        """The settings as stored in `suite.json`: only the names and hashes of the user's files."""
        from dokimos.suites.entry import read_content
        from dokimos.suites.instance import sha256

        kept = asdict(self) | {"input_shape": list(self.input_shape)}
        for name in ("model", "data"):
            if kept[name]:
                path = Path(kept[name])
                kept |= {name: path.name, f"{name}_sha256": sha256(read_content(path))}
        return {"hide": kept}


def parse_shape(text: str) -> tuple[int, ...]:
    """A shape such as 1x5x5 or 10."""
    try:
        shape = tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        shape = ()
    if not shape or len(shape) > 3 or any(not 1 <= size <= 10_000 for size in shape):
        raise InputError(f"{text!r} is not an input shape; write it like 1x5x5, or 10.")
    return shape
