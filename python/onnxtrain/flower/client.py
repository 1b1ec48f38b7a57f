"""The client's side: state comes, is trained on the client's own rows, and goes back."""

import numpy as np
from flwr.app import Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from ..errors import UsageError
from ..trainer import Trainer
from .settings import read, rows, training_file
from .travel import HOME, REST, Travel

WEIGHT = "onnxtrain.weight"  # key of a message's configuration: how the strategy calls the number of rows


def make(file, data, valid, threads, mods):
    app = ClientApp(mods=mods)

    @app.train()
    def train(message, context):
        settings = read(context.run_config)
        key, config = _config(message)
        trainer, travel = _opened(file, context, settings, message, config, threads)
        x, y, count = rows(data, context)
        history = trainer.fit(x, y, epochs=settings.epochs, batch_size=settings.batch, verbose=0)
        if travel.home:  # optimizer state and counters that do not travel go on where they stopped
            context.state[HOME] = travel.record(travel.home)
        content = {_record(message): travel.record(travel.trained)}
        if travel.rest:
            content[REST] = travel.record(travel.rest)
        loss = history.epochs[-1].get("train_loss", history.epochs[-1].get("loss"))
        content["metrics"] = MetricRecord({key: count, "train_loss": float(loss)})
        return Message(RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message, context):
        settings = read(context.run_config)
        key, config = _config(message)
        trainer, _ = _opened(file, context, settings, message, config, threads)
        x, y, count = rows(data if valid is None else valid, context)
        scores = {k: float(v) for k, v in trainer.evaluate(x, y).items() if isinstance(v, (int, float))}
        return Message(RecordDict({"metrics": MetricRecord({key: count, **scores})}), reply_to=message)

    return app


def _config(message):
    """(the strategy's name for the weight, the configuration that came along)"""
    config = next(iter(message.content.config_records.values()), {})
    if config.get("proximal-mu"):
        raise UsageError("the strategy asks for a proximal term (FedProx), which the training file does not have",
                         "OT5085", "strategy=FedAvg()")
    return config.get(WEIGHT, "num-examples"), config


def _record(message):
    """The name of the record with the parameters."""
    return next(name for name in message.content.array_records if name != REST)


def _opened(file, context, settings, message, config, threads):
    """A trainer with the state that came, and with what has stayed here since the last round."""
    client = context.node_config.get("partition-id", context.node_id)
    # other masks and another order of rows in every round and on every client, the same when a run is repeated
    words = [settings.seed, int(client) & (2**64 - 1), int(config.get("server-round", 0))]
    seed = int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)
    model = training_file(file, context)
    trainer = Trainer(model, seed=seed, threads=threads)
    travel = Travel(trainer, model, settings.travel)
    if HOME in context.state:
        travel.take(context.state[HOME], travel.home)
    travel.take(message.content[_record(message)], travel.trained)
    if travel.rest:
        travel.take(message.content.array_records.get(REST, {}), travel.rest)
    return trainer, travel
