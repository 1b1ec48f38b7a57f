"""`to_tf`: a model file (or a running Trainer) as a tf.Module.

Stages: graphs -> variables (variables.py) -> functions of the inference form, of every training section and of the
initialization (functions.py) -> all of them traced, so that every node that TensorFlow cannot run is named at once.
"""

from ...graph import read_graphs
from ...model import as_model
from ...trainer import Trainer
from ..shared import versions
from .functions import Functions
from .module import callable_module
from .obstacles import Obstacles
from .ops import table
from .run import GRADIENT
from .variables import make_variables, stored_tensors


def to_tf(model, seed=0):
    """A model (ot.Model, path, bytes) or a Trainer -> tf.Module. seed: of Dropout and random numbers."""
    versions.check_version()
    model = model.model() if isinstance(model, Trainer) else as_model(model)
    graphs = read_graphs(model, [*table.kinds(), GRADIENT])
    problems = Obstacles()
    functions = Functions(graphs, problems, seed)
    module = callable_module(functions.infer)()
    functions.module = module
    make_variables(module, stored_tensors(model, graphs))
    functions.make_counter()
    module.input_names, module.output_names = list(graphs.main.inputs), list(graphs.main.outputs)
    for name, f in functions.steps().items():
        setattr(module, name, f)
    module.initialize = functions.initialize()
    functions.trace()
    problems.raise_()
    module.model = functions.model_of(model)
    return module
