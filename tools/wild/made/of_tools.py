"""Files that other tools made of exported ones: quantized, optimised, halved, converted, simplified."""

import tempfile
from pathlib import Path

import numpy as np
import onnx

from . import of_torch


def base(name, opset=17):
    """An exported network and inputs for it."""
    if name in ("bert", "gpt2", "vit"):
        module, inputs = of_torch.transformers()[name]()
    elif name in ("mobilenet", "resnet"):
        module, inputs = of_torch.vision()[name]()
    else:
        module, inputs = of_torch.layers()[name]
    return of_torch.export(module, inputs, False, opset), {"x": inputs[0].numpy()}


class Feeds:
    """Calibration data of onnxruntime.quantization."""

    def __init__(self, feeds):
        self.left = iter([feeds, {n: v[::-1].copy() for n, v in feeds.items()}])

    def get_next(self):
        return next(self.left, None)


def in_folder(name, work, opset=17):
    with tempfile.TemporaryDirectory() as folder:
        data, feeds = base(name, opset)
        source, made = Path(folder) / "a.onnx", Path(folder) / "b.onnx"
        source.write_bytes(data)
        model = work(str(source), str(made), feeds)
        return onnx.load(str(made)) if model is None else model


def dynamic(name, **options):
    from onnxruntime.quantization import quantize_dynamic

    return in_folder(name, lambda a, b, _: quantize_dynamic(a, b, **options))


def static(name, form, **options):
    from onnxruntime.quantization import QuantFormat, quantize_static

    form = getattr(QuantFormat, form)
    return in_folder(name, lambda a, b, feeds: quantize_static(a, b, Feeds(feeds), quant_format=form, **options))


# activations, weights, settings of onnxruntime.quantization
TYPES = {
    "s8s8": ("QInt8", "QInt8", {}),
    "u8s8_narrow": ("QUInt8", "QInt8", {"reduce_range": True}),
    "s8s8_symmetric": ("QInt8", "QInt8", {"extra_options": {"ActivationSymmetric": True}}),
    "u16s8": ("QUInt16", "QInt8", {}),
    "s16s16": ("QInt16", "QInt16", {}),
    "u8s4": ("QUInt8", "QInt4", {}),
    "u8u8_quantized_bias_off": ("QUInt8", "QUInt8", {"extra_options": {"QuantizeBias": False}}),
    "u8s8_dedicated_pairs": ("QUInt8", "QInt8", {"extra_options": {"DedicatedQDQPair": True}}),
}


def static_of_types(name, form, types):
    from onnxruntime.quantization import QuantType

    activations, weights, options = TYPES[types]
    kinds = {"activation_type": getattr(QuantType, activations), "weight_type": getattr(QuantType, weights)}
    return static(name, form, **kinds, **options)


def dynamic_of_type(name, kind, **options):
    from onnxruntime.quantization import QuantType

    return dynamic(name, weight_type=getattr(QuantType, kind), **options)


def calibrated(name, method):
    from onnxruntime.quantization import CalibrationMethod

    return static(name, "QDQ", calibrate_method=getattr(CalibrationMethod, method))


def half_and_quantized(name):
    """A float16 model with quantizing pairs."""
    from onnxruntime.quantization import QuantFormat, quantize_static
    from onnxruntime.transformers.float16 import convert_float_to_float16

    def work(a, b, feeds):
        onnx.save(convert_float_to_float16(onnx.load(a), keep_io_types=True), a)
        quantize_static(a, b, Feeds(feeds), quant_format=QuantFormat.QDQ)

    return in_folder(name, work)


def four_bits(name):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    def work(a, b, _):
        q = MatMulNBitsQuantizer(onnx.load(a), block_size=16)
        q.process()
        onnx.save(q.model.model, b)

    return in_folder(name, work)


def optimised(name, level):
    import onnxruntime as o

    def work(a, b, _):
        options = o.SessionOptions()
        options.graph_optimization_level = getattr(o.GraphOptimizationLevel, level)
        options.optimized_model_filepath = b
        o.InferenceSession(a, options, providers=["CPUExecutionProvider"])

    return in_folder(name, work)


def fused(name, kind, half=False):
    from onnxruntime.transformers import optimizer

    def work(a, b, _):
        m = optimizer.optimize_model(a, model_type=kind, num_heads=2, hidden_size=16)
        if half:
            m.convert_float_to_float16()
        m.save_model_to_file(b)

    return in_folder(name, work)


def half(name, **options):
    from onnxconverter_common import float16

    return in_folder(name, lambda a, b, _: onnx.save(float16.convert_float_to_float16(onnx.load(a), **options), b))


def half_of_onnxruntime(name):
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return in_folder(name, lambda a, b, _: onnx.save(convert_float_to_float16(onnx.load(a), keep_io_types=True), b))


def converted(name, there, opset=17):
    from onnx import version_converter

    return in_folder(name, lambda a, b, _: version_converter.convert_version(onnx.load(a), there), opset)


def simplified(name):
    import onnxsim

    return in_folder(name, lambda a, b, _: onnxsim.simplify(onnx.load(a))[0])


def slim(name):
    import onnxslim

    return in_folder(name, lambda a, b, _: onnxslim.slim(onnx.load(a)))


def sparse(name):
    """Large initializers with most numbers zero, stored as sparse tensors."""

    def work(a, b, _):
        m = onnx.load(a)
        kept = []
        for i in m.graph.initializer:
            t = onnx.numpy_helper.to_array(i)
            if t.dtype != np.float32 or t.ndim != 2:
                kept.append(i)
                continue
            at = np.flatnonzero(np.arange(t.size) % 3 == 0)
            values = onnx.numpy_helper.from_array(t.reshape(-1)[at], i.name)
            places = onnx.numpy_helper.from_array(at.astype(np.int64), "")
            m.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, places, list(i.dims)))
        del m.graph.initializer[:]
        m.graph.initializer.extend(kept)
        return m

    return in_folder(name, work)


def with_preprocessing(name):
    """A model for uint8 images in front of another, by onnx.compose."""
    from onnx import parser

    front = parser.parse_graph("p (uint8[n,h,w,3] image) => (float[n,3,h,w] px) <float[3] mean = {120, 110, 100}> "
                               "{ f = Cast<to=1>(image) c = Sub(f, mean) px = Transpose<perm=[0,3,1,2]>(c) }")
    front = onnx.helper.make_model(front, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)

    def work(a, b, _):
        net = onnx.load(a)
        net.ir_version = 8
        return onnx.compose.merge_models(front, net, io_map=[("px", "x")], prefix2="net/")

    return in_folder(name, work)


def no_shapes(name):
    """Without any shape of inputs, outputs and values."""

    def work(a, b, _):
        m = onnx.load(a)
        del m.graph.value_info[:]
        for v in (*m.graph.input, *m.graph.output):
            for d in v.type.tensor_type.shape.dim:
                d.ClearField("value")
        return m

    return in_folder(name, work)


def files():
    for name in ("unet", "encoder", "lstm", "gru", "bert", "gpt2", "vit", "conv1d", "mobilenet"):
        yield f"tool_dynamic_{name}", lambda n=name: dynamic(n)
        yield f"tool_half_{name}", lambda n=name: half(n)
        yield f"tool_half_inside_{name}", lambda n=name: half_of_onnxruntime(n)
        yield f"tool_onnxsim_{name}", lambda n=name: simplified(n)
        yield f"tool_slim_{name}", lambda n=name: slim(n)
        for level in ("BASIC", "EXTENDED", "ALL"):
            yield f"tool_optimised_{level.lower()}_{name}", lambda n=name, v=level: optimised(n, f"ORT_ENABLE_{v}")
    for name in ("unet", "encoder", "bert", "conv1d", "mobilenet", "resnet"):
        for form in ("QDQ", "QOperator"):
            yield f"tool_static_{form}_{name}", lambda n=name, f=form: static(n, f)
            yield f"tool_static_{form}_{name}_channels", lambda n=name, f=form: static(n, f, per_channel=True)
    for name in ("unet", "encoder", "conv1d", "lstm"):
        for types in TYPES:
            yield f"tool_static_QDQ_{types}_{name}", lambda n=name, t=types: static_of_types(n, "QDQ", t)
        yield f"tool_static_QOperator_s8s8_{name}", lambda n=name: static_of_types(n, "QOperator", "s8s8")
        yield f"tool_dynamic_s8_{name}", lambda n=name: dynamic_of_type(n, "QInt8")
        yield f"tool_dynamic_s8_channels_{name}", lambda n=name: dynamic_of_type(n, "QInt8", per_channel=True)
        for method in ("Percentile", "Entropy"):
            yield f"tool_calibrated_{method.lower()}_{name}", lambda n=name, m=method: calibrated(n, m)
        yield f"tool_half_static_QDQ_{name}", lambda n=name: half_and_quantized(n)
    for name in ("encoder", "bert", "gpt2"):
        yield f"tool_four_bits_{name}", lambda n=name: four_bits(n)
        yield f"tool_sparse_{name}", lambda n=name: sparse(n)
        kind = "gpt2" if name == "gpt2" else "bert"
        yield f"tool_fused_{name}", lambda n=name, k=kind: fused(n, k)
        yield f"tool_fused_half_{name}", lambda n=name, k=kind: fused(n, k, True)
    yield "tool_fused_vit", lambda: fused("vit", "vit")
    for name in ("unet", "gru", "conv1d", "masked", "where_norms"):
        for there in (18, 20, 22):
            yield f"tool_opset_{there}_{name}", lambda n=name, o=there: converted(n, o)
        yield f"tool_opset_9_to_15_{name}", lambda n=name: converted(n, 15, 9)
        yield f"tool_no_shapes_{name}", lambda n=name: no_shapes(n)
    yield "tool_preprocessing_unet", lambda: with_preprocessing("unet")
    yield "tool_preprocessing_mobilenet", lambda: with_preprocessing("mobilenet")
