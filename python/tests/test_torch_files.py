"""Trainings that from_torch made (tests/pytorch/make_files.py), stepped without PyTorch: the losses are PyTorch's."""

import pathlib

import numpy as np
import pytest

import onnxtrain as ot

FOLDER = pathlib.Path(__file__).parent / "torch_files"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.train.onnx")), ids=lambda p: p.name.split(".")[0])
def test_steps_like_pytorch(path):
    assert not ot.check(str(path))
    recorded = np.load(path.with_name(path.name.replace(".train.onnx", ".npz")))
    feeds = {k.removeprefix("feed "): recorded[k] for k in recorded.files if k.startswith("feed ")}
    trainer = ot.Trainer(str(path), seed=0)
    losses = [trainer.step(feeds).loss for _ in recorded["losses"]]
    np.testing.assert_allclose(losses, recorded["losses"], rtol=2e-5)
    for key in recorded.files:
        if key.startswith("after "):
            want = recorded[key]
            np.testing.assert_allclose(trainer.state[key.removeprefix("after ")], want, rtol=1e-4,
                                       atol=1e-4 * np.abs(want).max())


def test_there_are_files():
    assert len(list(FOLDER.glob("*.train.onnx"))) >= 5
