"""File -> estimator: the class and its attributes from the metadata, weights and state from the initializers."""

import numpy as np

from ...converters.metadata import read_info
from ...errors import ModelError
from ...graph import read_graphs
from ...model import as_model
from ...trainer import Trainer
from ..shared import config
from ..shared.state import KEY, last, put_back
from ..shared.versions import say_if_other, sklearn


def rebuild(source):
    version = sklearn().__version__
    model = source.model() if isinstance(source, Trainer) else as_model(source)
    graphs = read_graphs(model)
    info = read_info(graphs, KEY)
    if info is None:
        raise ModelError("this file does not come from scikit-learn: there is no estimator in it", "OT1762",
                         "files of ot.from_sklearn come back; others: ot.OnnxClassifier, ot.OnnxRegressor")
    estimator = config.read(info, KEY)
    say_if_other(str(info.get("sklearn", "")), version)
    values = state_of(graphs)
    try:
        put_back(last(estimator), info["family"], values)
    except (KeyError, AttributeError, ValueError, TypeError, IndexError) as e:
        missing = f"there is no state variable {e}" if isinstance(e, KeyError) else e
        raise ModelError(f"the estimator in this file cannot be filled: {missing}", "OT1762",
                         "a file with its training: trainer.save(path), not export(path)") from None
    return estimator


def state_of(graphs):
    """{initializer: array} of the main graph and of the training."""
    found = {}
    for graph in (graphs.main, *(s.algorithm for s in graphs.sections)):
        for name in graph.constants:
            found[name] = np.asarray(graph.constants[name])
    return found
