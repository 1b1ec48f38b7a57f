"""The example with a SuperLink and SuperNodes of Flower; a client that sends wrong shapes and then dies."""

import pathlib
import shutil
import sys

import numpy as np
import onnx
import pytest

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples/federated"
sys.path.insert(0, str(EXAMPLE))
import run as example  # noqa: E402

# the client of the example, but that the third one misbehaves: wrong shapes in round 1, gone in round 2
CLIENT = '''
import os
import signal

import numpy as np
import onnxtrain.flower
from flwr.app import Array

from .task import file, rows

app = onnxtrain.flower.client_app(file, rows, threads=1)
train = app._registered_funcs["train.default"]


def misbehaves(message, context):
    reply = train(message, context)
    if context.node_config["partition-id"] == 2:
        if message.content["config"]["server-round"] == 2:
            os.killpg(0, signal.SIGKILL)  # SuperNode and all that it started
        reply.content["arrays"]["fc1.weight"] = Array(np.zeros((3, 3), "f4"))
    return reply


app._registered_funcs["train.default"] = misbehaves
'''


@pytest.fixture
def app(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__", "averaged.onnx"))
    (tmp_path / "app/spirals/client.py").write_text(CLIENT)
    return tmp_path / "app"


def test_a_federation_of_processes(app, tmp_path):
    exported = tmp_path / "averaged.onnx"
    with example.Federation(tmp_path, app) as flower:
        for k in range(3):
            flower.add_node(k)
        run = flower.submit(num_server_rounds=2, export=str(exported), travel="all", clients=3,
                            file=str(EXAMPLE / "model.train.onnx"))
        status = flower.wait(run, 300)
        said = flower.log(run)
    assert status == "finished:completed", said
    assert "left out: 'fc1.weight' has shape [3, 3], here it is [32, 2]" in said, said
    assert "2 of 2 rounds gave an average; 1 replies were left out" in said, said
    model = onnx.load(exported)
    onnx.checker.check_model(model)
    assert not model.training_info
    before = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(EXAMPLE / "model.train.onnx").graph.initializer}
    after = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    assert after and all(not np.array_equal(before[name], after[name]) for name in after)
