"""What a converter writes beside the graphs: which initializer is the learning rate, which loss, which output, and one
JSON object of the framework's own (names, groups of the optimizer, the scheduler), so that the way back is exact."""

import json

from ..errors import ModelError

FORMAT = 1
INFERENCE_FORM = "onnxtrain.inference_form"


def properties(key, info, loss=None, output=None, forms=None):
    """metadata_props of a file. key: "onnxtrain.FRAMEWORK", info: its JSON object; loss: its name in docs/recipe.md or
    "custom", None for an inference model; forms: {value of the algorithm: the value of the main graph whose training
    form it is}."""
    props = {key: json.dumps({"format": FORMAT, **info})}
    if loss is not None:
        props |= {"onnxtrain.rate": "learning_rate", "onnxtrain.loss": loss, "onnxtrain.output": output}
    if forms is not None:
        props[INFERENCE_FORM] = json.dumps(forms)
    return props


def read_forms(graphs, algorithm):
    """{value of the main graph: its training form in the algorithm}, as far as the file says it. Earlier files of
    from_torch say it by the ending `_train`."""
    made = {o for n in algorithm.nodes for o in n.outputs}
    text = graphs.metadata.get(INFERENCE_FORM)
    if text is None:
        named = graphs.main.outputs if "onnxtrain.torch" in graphs.metadata else ()
        return {o: o + "_train" for o in named if o + "_train" in made}
    try:
        return {form: copy for copy, form in json.loads(text).items() if copy in made}
    except (ValueError, AttributeError, TypeError) as e:
        raise ModelError(f"the metadata '{INFERENCE_FORM}' is damaged: {e}", "OT1714",
                         "convert the model again") from None


def read_info(graphs, key):
    """The JSON object of a file, or None when it has none."""
    text = graphs.metadata.get(key)
    if not text:
        return None
    try:
        info = json.loads(text)
        if not isinstance(info, dict) or info.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        return info
    except ValueError as e:
        raise ModelError(f"the metadata '{key}' is damaged: {e}", "OT1714", "convert the model again") from None
