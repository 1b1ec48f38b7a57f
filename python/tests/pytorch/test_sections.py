"""Files made by hand: several training sections, rules and gradients of their own."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import onnxtrain as ot

F = TensorProto.FLOAT


def info(name, shape, elem=F):
    return helper.make_tensor_value_info(name, elem, shape)


def section(nodes, inputs, outputs, state, update):
    """A TrainingInfoProto of parts."""
    t = onnx.TrainingInfoProto()
    t.algorithm.CopyFrom(
        helper.make_graph(nodes, "step", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in state.items()])
    )
    for key, value in update.items():
        b = t.update_binding.add()
        b.key, b.value = key, value
    return t


def descent(parameter, loss, zs, tag):
    """Gradient of `loss` by one parameter, and a plain step."""
    return [
        helper.make_node(
            "Gradient",
            [parameter, *zs],
            [f"g{tag}"],
            f"gradient{tag}",
            domain="ai.onnx.preview.training",
            xs=[parameter],
            zs=list(zs),
            y=loss,
        ),
        helper.make_node("Mul", [f"g{tag}", f"rate{tag}"], [f"d{tag}"]),
        helper.make_node("Sub", [parameter, f"d{tag}"], [f"{parameter}_new"]),
    ]


def two_sections():
    """y = (x w1) w2; section 0 trains w1 on a squared error, section 1 trains w2 on an absolute one."""
    rng = np.random.default_rng(0)
    w1, w2 = (rng.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 2)))
    main = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("MatMul", ["h", "w2"], ["y"])],
        "main",
        [info("x", ["N", 3])],
        [info("y", ["N", 2])],
        [numpy_helper.from_array(w1, "w1"), numpy_helper.from_array(w2, "w2")],
    )
    m = helper.make_model(
        main,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)],
        ir_version=8,
    )
    rate = np.array(0.1, np.float32)
    first = [
        helper.make_node("Sub", ["y", "t0"], ["e0"]),
        helper.make_node("Mul", ["e0", "e0"], ["s0"]),
        helper.make_node("ReduceMean", ["s0"], ["loss0"], keepdims=0),
        *descent("w1", "loss0", ["w2", "x", "t0"], "0"),
    ]
    second = [
        helper.make_node("Sub", ["y", "t1"], ["e1"]),
        helper.make_node("Abs", ["e1"], ["s1"]),
        helper.make_node("ReduceMean", ["s1"], ["loss1"], keepdims=0),
        *descent("w2", "loss1", ["w1", "x", "t1"], "1"),
    ]
    m.training_info.append(
        section(
            first,
            [info("t0", ["N", 2])],
            [info("loss0", []), info("w1_new", [3, 4])],
            {"rate0": rate},
            {"w1": "w1_new"},
        )
    )
    m.training_info.append(
        section(
            second,
            [info("t1", ["N", 2])],
            [info("loss1", []), info("w2_new", [4, 2])],
            {"rate1": rate},
            {"w2": "w2_new"},
        )
    )
    return m


def test_two_sections():
    m = two_sections().SerializeToString()
    assert ot.check(m) == []
    trainer, made = ot.Trainer(m), ot.to_torch(m)
    made.module.train()
    rng = np.random.default_rng(1)
    for _ in range(3):
        feeds = {n: rng.standard_normal((5, k)).astype(np.float32) for n, k in (("x", 3), ("t0", 2), ("t1", 2))}
        for k in range(2):
            here = trainer.step(feeds, which=k).loss
            assert made.sections[k].step({n: torch.from_numpy(v) for n, v in feeds.items()}) == pytest.approx(
                here, rel=1e-5
            )
    for name in ("w1", "w2"):
        np.testing.assert_allclose(made.module.tensor(name).detach(), trainer.state[name], rtol=1e-5, atol=1e-6)
    # each section's own loss and optimizer in a user's loop
    x, t = torch.randn(5, 3), torch.randn(5, 2)
    out = made.module(x)
    assert made.sections[1].loss(out, t).item() == pytest.approx((out - t).abs().mean().item(), rel=1e-5)
    assert made.sections[0].loss(out, {"t0": t}).item() == pytest.approx(((out - t) ** 2).mean().item(), rel=1e-5)
    assert [[p.shape for p in s.optimizer.param_groups[0]["params"]] for s in made.sections] == [[(3, 4)], [(4, 2)]]


def test_one_section_with_two_losses_is_refused():
    m = two_sections()
    first, second = m.training_info
    nodes = list(second.algorithm.node)
    first.algorithm.node.extend(nodes)
    first.algorithm.input.extend(second.algorithm.input)
    first.algorithm.output.extend(second.algorithm.output)
    first.algorithm.initializer.extend(second.algorithm.initializer)
    first.update_binding.extend(second.update_binding)
    del m.training_info[1]
    with pytest.raises(ot.ModelError, match="several tensors"):
        ot.to_torch(m.SerializeToString())


def test_statistics_of_another_rule():
    """Running statistics that are not torch's (population variance, as the operator writes them) are kept as the file
    says."""
    rng = np.random.default_rng(0)
    stored = {
        "w": rng.standard_normal((3, 4)),
        "bn.weight": np.ones(4),
        "bn.bias": np.zeros(4),
        "bn.running_mean": np.zeros(4),
        "bn.running_var": np.ones(4),
    }
    norm = ["h", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"]
    main = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("BatchNormalization", norm, ["y"])],
        "main",
        [info("x", ["N", 3])],
        [info("y", ["N", 4])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in stored.items()],
    )
    m = helper.make_model(
        main,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)],
        ir_version=8,
    )
    nodes = [
        helper.make_node("BatchNormalization", norm, ["yt", "mean_new", "var_new"], training_mode=1, momentum=0.8),
        helper.make_node("Sub", ["yt", "t"], ["e"]),
        helper.make_node("Mul", ["e", "e"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["loss"], keepdims=0),
        *descent("w", "loss", ["bn.weight", "bn.bias", "x", "t"], ""),
    ]
    outputs = [info("loss", []), info("w_new", [3, 4]), info("mean_new", [4]), info("var_new", [4])]
    m.training_info.append(section(nodes, [info("t", ["N", 4])], outputs, {"rate": np.array(0.1, np.float32)},
                                   {"w": "w_new", "bn.running_mean": "mean_new", "bn.running_var": "var_new"}))
    trainer, made = ot.Trainer(m.SerializeToString()), ot.to_torch(m.SerializeToString())
    feeds = {"x": rng.standard_normal((6, 3)).astype(np.float32), "t": rng.standard_normal((6, 4)).astype(np.float32)}
    made.module.train()
    for _ in range(3):
        assert made.step({k: torch.from_numpy(v) for k, v in feeds.items()}) == pytest.approx(
            trainer.step(feeds).loss, rel=1e-5
        )
    for name in ("bn.running_mean", "bn.running_var", "w"):
        np.testing.assert_allclose(made.module.state_dict()[name], trainer.state[name], rtol=1e-5, atol=1e-6)
