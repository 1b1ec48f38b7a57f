"""What a converter writes beside the graphs: which initializer is the learning rate, which loss, which output, and one
JSON object of the framework's own (names, groups of the optimizer, the scheduler), so that the way back is exact."""

import json

from ..errors import ModelError

FORMAT = 1


def properties(key, info, loss=None, output=None):
    """metadata_props of a file. key: "onnxtrain.FRAMEWORK", info: its JSON object; loss: its name in docs/recipe.md or
    "custom", None for an inference model."""
    props = {key: json.dumps({"format": FORMAT, **info})}
    if loss is not None:
        props |= {"onnxtrain.rate": "learning_rate", "onnxtrain.loss": loss, "onnxtrain.output": output}
    return props


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
