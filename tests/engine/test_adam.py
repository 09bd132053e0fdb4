"""Adam moves tensors to the same bits as torch's own, with and without an interruption."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

import dokimos
from dokimos.engine.differentiable import Adam

torch = pytest.importorskip("torch")


def weights(seed: int) -> list:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    shapes, kinds = ((5, 3), (3,), (2,)), (np.float32, np.float64, np.float32)
    drawn = (rng.normal(size=s).astype(kind) for s, kind in zip(shapes, kinds, strict=True))
    return [torch.from_numpy(each).requires_grad_() for each in drawn]


def gradients(tensors: list, step: int) -> None:  # type: ignore[type-arg]
    """Of another size at each step; sometimes none."""
    rng = np.random.default_rng(step)
    for number, each in enumerate(tensors):
        drawn = torch.from_numpy(10.0 ** rng.integers(-6, 3) * rng.normal(size=each.shape))
        each.grad = None if (step + number) % 5 == 0 else drawn.to(each.dtype)


class TorchsOwn:
    """The update that `torch.optim.Adam` makes, called directly: its class would load torch's compiler."""

    def __init__(self, tensors: list, *, rate: float) -> None:  # type: ignore[type-arg]
        self.rate, self.tensors = rate, tensors
        self.state = [[torch.tensor(0.0), torch.zeros_like(w), torch.zeros_like(w)] for w in tensors]

    def step(self) -> None:
        moved = [n for n, each in enumerate(self.tensors) if each.grad is not None]
        steps, means, squares = ([self.state[n][part] for n in moved] for part in range(3))
        values = [self.tensors[n].detach() for n in moved]
        slopes = [self.tensors[n].grad for n in moved]
        given = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
        said = {"foreach": False, "amsgrad": False, "maximize": False}
        from torch.optim.adam import adam

        adam(values, slopes, means, squares, [], steps, lr=self.rate, **given, **said)


def test_it_is_torchs_own_bit_for_bit() -> None:
    ours, theirs = weights(0), weights(0)
    adam, own = Adam(ours, rate=0.05), TorchsOwn(theirs, rate=0.05)
    for step in range(40):
        if step == 20:
            adam.rate = own.rate = 0.01
        adam.zero_grad()
        assert all(each.grad is None for each in ours)
        for tensors, optimiser in ((ours, adam), (theirs, own)):
            gradients(tensors, step)
            optimiser.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(ours, weights(0), strict=True))


def test_it_continues_from_a_state_that_was_saved() -> None:
    through, first = weights(1), weights(1)
    whole, half = Adam(through, rate=0.05), Adam(first, rate=0.05)
    for step in range(6):
        gradients(through, step)
        whole.step()
    for step in range(3):
        gradients(first, step)
        half.step()
    kept = io.BytesIO()
    torch.save(half.state(), kept)
    rest = Adam(first, rate=0.05)
    rest.resume(torch.load(io.BytesIO(kept.getvalue()), weights_only=True))
    for step in range(3, 6):
        gradients(first, step)
        rest.step()
    assert all(torch.equal(a, b) for a, b in zip(through, first, strict=True))


def test_the_state_of_other_tensors_is_refused() -> None:
    one, other = weights(2), weights(2)
    with pytest.raises(ValueError, match="other tensors"):
        Adam(one, rate=0.1).resume(Adam(other[:2], rate=0.1).state())
    with pytest.raises(KeyError):
        Adam(one, rate=0.1).resume({})


def test_nothing_loads_the_compiler_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # importing it would fail
    (tensor,) = weights(3)[:1]
    adam = Adam([tensor], rate=0.1)
    tensor.square().sum().backward()
    adam.step()
    adam.zero_grad()
    sources = Path(dokimos.__file__).parent.rglob("*.py")
    assert [path for path in sources if "optim.Adam(" in path.read_text(encoding="utf-8")] == []
