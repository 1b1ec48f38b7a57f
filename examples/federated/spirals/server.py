"""What the SuperLink runs."""

from flwr.serverapp.strategy import FedAvg

import onnxtrain.flower

from .task import file, spirals


def strategy(context):
    return FedAvg(min_available_nodes=context.run_config["clients"], fraction_evaluate=0.0)


app = onnxtrain.flower.server_app(file, strategy, valid=spirals(1000, seed=1))
