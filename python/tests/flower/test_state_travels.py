"""What travels between clients and server, in which form; replies that do not fit are left out."""

import logging

import ml_dtypes
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAdam, FedAvg, FedProx
from flwr.supercore.task_identity import TaskIdentity

import onnxtrain as ot
import onnxtrain.flower
from onnxtrain.flower import settings, strategy, travel

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # messages are made outside of a run here
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(48, 6)).astype("f4"), RNG.integers(0, 4, 48)


def numbers(*shape):
    return "{" + ", ".join(f"{v:.5f}" for v in (RNG.normal(size=shape) * 0.5).ravel()) + "}"


MODEL = f"""
<ir_version: 8, opset_import: ["": 17]>
g (float[N,6] x) => (float[N,4] scores)
<float[6,4] w = {numbers(6, 4)}, float[4] b = {numbers(4)}, float[4] g = {{1,1,1,1}}, float[4] m = {{0,0,0,0}},
 float[4] v = {{1,1,1,1}}>
{{
  h = MatMul(x, w)
  scores = BatchNormalization(h, g, b, m, v)
}}
"""


def training(optimizer=None, **options):
    return ot.prepare(ot.parse(MODEL), loss="cross_entropy", optimizer=optimizer or ot.Adam(lr=0.05), label="label",
                      **options)


def context(node=1, **config):
    return Context(run_id=1, node_id=node, node_config={"partition-id": node}, state=RecordDict(), run_config=config)


def opened(file, mode="all"):
    trainer = ot.Trainer(file)
    return trainer, travel.Travel(trainer, file, mode)


def asked(way, kind="train", **config):
    content = {"arrays": way.record(way.trained), "config": ConfigRecord({"server-round": 1, **config})}
    if way.rest:
        content[travel.REST] = way.record(way.rest)
    return Message(RecordDict(content), dst_node_id=1, message_type=kind)


def test_frozen_parameters_stay_and_groups_are_told_apart():
    _, way = opened(training(freeze=["b"]))
    assert way.trained == ["w", "g"] and "b" not in way.rest
    assert {"m", "v", "w.exp_avg", "w.exp_avg_sq", "T"} <= set(way.rest) and not way.home
    _, way = opened(training(freeze=["b"]), "trainable")
    assert way.trained == ["w", "g"] and not way.rest and {"m", "T", "w.exp_avg"} <= set(way.home)
    _, way = opened(training(freeze=["b"], lowered=True, batch=8))  # no Gradient in the file
    assert way.trained == ["w", "g"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "int4", "uint8",
                                   "int64", "bool"])
@pytest.mark.parametrize("shape", [(3, 5), (), (0, 2)])
def test_every_type_comes_back_with_its_bits(dtype, shape):
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    value = (RNG.normal(size=shape) * 3).astype(kind)
    array = travel.to_array(value)
    assert array.numpy().dtype.itemsize >= (4 if "float" in dtype else 1)
    back = travel.from_array(array, value, "s")
    assert back.dtype == kind and back.shape == shape
    assert back.tobytes() == value.tobytes()
    if dtype == "int64" and not shape:
        big = np.array(2**62 + 1)  # a mean in float64 would lose the last bit
        assert travel.middle([big, big, big], [0.2, 0.3, 0.5]) == big


def test_integers_take_the_middle_value():
    a, b, c = np.array([3, 10, -7]), np.array([5, 10, 2**60]), np.array([100, 10, 4])
    assert travel.middle([a, b, c], [1, 1, 1]).tolist() == [5, 10, 4]
    assert travel.middle([a, b, c], [1, 1, 5]).tolist() == [100, 10, 4]
    assert travel.middle([np.array(True), np.array(False)], [3, 1]) == np.array(True)


def test_averages_of_16_bits_are_rounded_once():
    """The mean of float16 values in float16 arithmetic would be off in the last places."""
    values = [np.float16(v) for v in (0.1, 1000.5, 0.3003)]
    replies = [RecordDict({"a": ArrayRecord({"s": travel.to_array(np.array(v))}), "m": MetricRecord({"w": w})})
               for v, w in zip(values, (1, 2, 4))]
    made = strategy.aggregate_arrayrecords(replies, "w")["s"]
    exact = sum(float(v) * w for v, w in zip(values, (1, 2, 4))) / 7
    assert travel.from_array(made, np.array(values[0]), "s") == np.float16(exact)


def test_a_client_trains_what_came_and_keeps_what_stays():
    """One round of one client is `fit` with the same seed; with travel=trainable moments and counter go on at home."""
    file = training()
    for mode in settings.TRAVEL:
        app = onnxtrain.flower.client_app(file, (X, Y), threads=1)
        _, way = opened(file, mode)
        place = context(travel=mode, **{"batch-size": 16, "local-epochs": 2})
        first = app(asked(way), place)
        assert first.content["metrics"]["num-examples"] == 48 and np.isfinite(first.content["metrics"]["train_loss"])
        assert set(first.content["arrays"]) == {"w", "b", "g"}
        if mode == "all":
            assert first.content[travel.REST]["T"].numpy() == 6
            continue
        assert travel.REST not in first.content and place.state[travel.HOME]["T"].numpy() == 6
        before = place.state[travel.HOME]["w.exp_avg"].numpy()
        app(asked(way), place)
        assert place.state[travel.HOME]["T"].numpy() == 12
        assert not np.array_equal(before, place.state[travel.HOME]["w.exp_avg"].numpy())


def test_one_step_each_is_the_central_step():
    """With one step per round and equal shares, averaging parameters is averaging gradients."""
    plain = MODEL.replace("h = MatMul(x, w)", "t = MatMul(x, w)").replace(
        "scores = BatchNormalization(h, g, b, m, v)", "scores = Add(t, b)").replace(
        "float[4] g = {1,1,1,1}, float[4] m = {0,0,0,0},\n float[4] v = {1,1,1,1}", "float[1] unused = {0}")
    file = ot.prepare(ot.parse(plain), loss="cross_entropy", optimizer=ot.SGD(lr=0.5), label="label")
    central, (server, way) = ot.Trainer(file, threads=1), opened(file)
    around = strategy.checked(FedAvg(), way)
    apps = [onnxtrain.flower.client_app(file, (X[k::4], Y[k::4]), threads=1) for k in range(4)]
    for r in range(10):
        message = asked(way)
        replies = [app(message, context(k, **{"batch-size": 12})) for k, app in enumerate(apps)]
        arrays, metrics = around.aggregate_train(r + 1, replies)
        way.take(arrays, way.trained)
        way.take(around.rest, way.rest)
        loss = central.step({"x": X, "label": Y}).loss
        assert metrics["train_loss"] == pytest.approx(loss, rel=1e-5)
    assert server.state["T"] == central.state["T"] == 10
    for name in way.trained:
        np.testing.assert_allclose(server.state[name], central.state[name], rtol=1e-5, atol=1e-6)


def replies_of(file, way, count=4):
    app = onnxtrain.flower.client_app(file, (X, Y), threads=1)
    return [app(asked(way), context(k)) for k in range(count)]


def broken(reply, how):
    arrays, metrics = reply.content["arrays"], reply.content["metrics"]
    if how == "shape":
        arrays["w"] = Array(np.zeros((4, 6), "f4"))
    elif how == "type":
        arrays["w"] = Array(np.zeros((6, 4), "i4"))
    elif how == "name":
        arrays["other"] = arrays.pop("w")
    elif how == "nan":
        arrays["w"] = Array(np.full((6, 4), np.nan, "f4"))
    elif how == "bytes":
        arrays["w"] = Array(dtype="float32", shape=(6, 4), stype="numpy.ndarray", data=b"no array")
    elif how == "weight":
        metrics["num-examples"] = -5
    elif how == "loss":
        metrics["train_loss"] = float("nan")
    elif how == "metrics":
        del metrics["train_loss"]
    elif how == "state":
        del reply.content[travel.REST]
    elif how == "counter":
        reply.content[travel.REST]["T"] = Array(np.array(1.5))
    return reply


@pytest.mark.parametrize("how", ["shape", "type", "name", "nan", "bytes", "weight", "loss", "metrics", "state",
                                 "counter"])
def test_a_reply_that_does_not_fit_is_left_out_and_said(how, caplog):
    file = training()
    _, way = opened(file)
    around = strategy.checked(FedAvg(), way)
    good = replies_of(file, way)
    want, _ = strategy.checked(FedAvg(), way).aggregate_train(1, replies_of(file, way)[1:])
    with caplog.at_level(logging.WARNING, "flwr"):
        logging.getLogger("flwr").propagate = True
        got, _ = around.aggregate_train(1, [broken(good[0], how), *good[1:]])
    assert around.left_out == 1 and "left out" in caplog.text
    assert all(np.array_equal(want[n].numpy(), got[n].numpy()) for n in way.trained)


def test_a_round_without_answers_keeps_the_state(caplog):
    file = training()
    _, way = opened(file)
    around = strategy.checked(FedAvg(), way)
    arrays, _ = around.aggregate_train(1, [])
    assert arrays is None and around.rounds == 0


def test_a_server_optimizer_moves_the_parameters_alone():
    """FedAdam would make second moments and variances negative; they are means of the clients'."""
    file = training()
    trainer, way = opened(file)
    around = strategy.checked(FedAdam(eta=0.5), way)
    around.inner.current_arrays = {n: trainer.state[n] for n in way.trained}
    replies = replies_of(file, way)
    means = {n: np.mean([r.content[travel.REST][n].numpy() for r in replies], axis=0) for n in ("v", "w.exp_avg_sq")}
    arrays, _ = around.aggregate_train(1, replies)
    assert not np.allclose(arrays["w"].numpy(), np.mean([r.content["arrays"]["w"].numpy() for r in replies], axis=0))
    for name, mean in means.items():
        np.testing.assert_allclose(around.rest[name].numpy(), mean, rtol=1e-5)
        assert (around.rest[name].numpy() >= 0).all()


@pytest.mark.parametrize("key, value, code", [
    ("travel", "some", "OT5080"), ("num-server-rounds", 0, "OT5081"), ("batch-size", 1.5, "OT5081"),
    ("local-epochs", True, "OT5081"), ("round-timeout", -1, "OT5081"), ("export", "model.pt", "OT5081")])
def test_a_wrong_key_is_named(key, value, code):
    with pytest.raises(ot.UsageError) as e:
        settings.read({key: value})
    assert e.value.code == code and key in str(e.value) and e.value.hint


def test_what_clients_cannot_do_is_refused():
    file = training()
    _, way = opened(file)
    private = DifferentialPrivacyServerSideFixedClipping(FedAvg(), noise_multiplier=1.0, clipping_norm=1.0,
                                                         num_sampled_clients=2)
    for wrong in (FedProx(proximal_mu=0.1), private, "fedavg"):
        with pytest.raises(ot.UsageError) as e:
            strategy.checked(wrong, way)
        assert e.value.code == "OT5085"
    strategy.checked(private, opened(file, "trainable")[1])
    app = onnxtrain.flower.client_app(file, (X, Y))
    with pytest.raises(ot.UsageError, match="proximal"):
        app(asked(way, **{"proximal-mu": 0.1}), context())
    with pytest.raises(ot.DataError) as e:
        onnxtrain.flower.client_app(file, (X[:0], Y[:0]))(asked(way), context())
    assert e.value.code == "OT5084"
    with pytest.raises(ot.UsageError) as e:
        onnxtrain.flower.client_app(ot.parse(MODEL), (X, Y))(asked(way), context())
    assert e.value.code == "OT5082"


def test_what_comes_must_fit_the_file():
    _, way = opened(training())
    app = onnxtrain.flower.client_app(training(ot.SGD(lr=0.1)), (X, Y))
    with pytest.raises(ot.DataError, match="is not known here") as e:
        app(asked(way), context())
    assert e.value.code == "OT5083"


def test_evaluating(tmp_path):
    file = training()
    _, way = opened(file)
    np.savez(tmp_path / "d.npz", x=X, label=Y)
    app = onnxtrain.flower.client_app(file, lambda c: tmp_path / "d.npz", valid=(X[:10], Y[:10]))
    reply = app(asked(way, "evaluate"), context())
    metrics = reply.content["metrics"]
    assert metrics["num-examples"] == 10 and 0 <= metrics["accuracy"] <= 1 and np.isfinite(metrics["loss"])
    assert app(asked(way), context()).content["metrics"]["num-examples"] == 48
