"""Federated training by Flower (flwr): a training file is all that the apps need.

    app = onnxtrain.flower.client_app("model.train.onnx", data)      # module that pyproject.toml names as clientapp
    app = onnxtrain.flower.server_app("model.train.onnx")            # and as serverapp

State travels by name. docs/flower.md has the keys of the run configuration and what is averaged how.
"""

import importlib

from ..errors import UsageError


def _part(module, name):
    """A function of this folder, imported when it is called: flwr is an optional extra."""
    try:
        importlib.import_module("flwr.serverapp.strategy")
    except ImportError as e:
        missing = "flwr" if (e.name or "flwr").startswith("flwr") else e.name
        raise UsageError(f"this needs the package '{missing}' (with the message API, 1.41 or newer)", "OT1733",
                         "pip install 'onnxtrain[flower]'") from None
    return getattr(importlib.import_module(f".{module}", __name__), name)


def client_app(file, data, valid=None, *, threads=0, mods=None):
    """A flwr ClientApp that trains the file on this client's rows.

    file: a training file: its path, an ot.Model, or a function of Flower's Context that gives one of them.
    data: the rows: (x, y) or {name: array} as `Trainer.fit` takes them, the path of an .npz file, or a function of the
    Context (`context.node_config["partition-id"]`) that gives one of them. valid: rows for evaluating, in the same
    forms; without them the client is evaluated on its own training rows. threads: of one client; mods: Flower's.
    """
    return _part("client", "make")(file, data, valid, threads, mods)


def server_app(file, strategy=None, valid=None, *, threads=0):
    """A flwr ServerApp that has the clients train the file, averages what they send, and exports the result.

    file: as for the clients; its state is what the first round starts from. strategy: one of flwr.serverapp.strategy,
    or a function of the Context that makes one; FedAvg unless told. valid: rows on which the server evaluates the
    averaged model after every round.
    """
    return _part("server", "make")(file, strategy, valid, threads)


__all__ = ["client_app", "server_app"]
