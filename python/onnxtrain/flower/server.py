"""The server's side: rounds by a strategy of Flower's, and the averaged model as an ONNX file."""

import logging
import os

from flwr.app import ConfigRecord, MetricRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from ..errors import Error
from ..trainer import Trainer
from .client import WEIGHT
from .settings import given, read, rows, training_file
from .strategy import checked
from .travel import Travel

log = logging.getLogger("flwr")


def make(file, strategy, valid, threads):
    app = ServerApp()

    @app.main()
    def main(grid, context):
        settings = read(context.run_config)
        model = training_file(file, context)
        trainer = Trainer(model, seed=settings.seed, threads=threads)
        travel = Travel(trainer, model, settings.travel)
        _say(travel, settings)
        chosen = strategy if isinstance(strategy, Strategy) else given(strategy, context) or FedAvg()
        around = checked(chosen, travel)

        def take(arrays):
            travel.take(arrays, travel.trained)
            if travel.rest:
                travel.take(around.rest, travel.rest)

        def evaluate(_, arrays):
            take(arrays)
            x, y, _ = rows(valid, context)
            return MetricRecord({k: float(v) for k, v in trainer.evaluate(x, y).items() if isinstance(v, (int, float))})

        config = {WEIGHT: around.weight}
        result = around.start(grid, travel.record(travel.trained), num_rounds=settings.rounds,
                              timeout=settings.round_timeout, train_config=ConfigRecord(dict(config)),
                              evaluate_config=ConfigRecord(dict(config)),
                              evaluate_fn=evaluate if valid is not None else None)
        if not around.rounds:
            raise Error(f"no round of {settings.rounds} gave an average: every client failed or did not answer",
                        "OT5086", "the lines above name each client and its reason")
        take(result.arrays)
        log.info("%d of %d rounds gave an average; %d replies were left out", around.rounds, settings.rounds,
                 around.left_out)
        if settings.export:
            trainer.export(settings.export)
            log.info("the averaged model: %s", os.path.abspath(settings.export))

    return app


def _say(travel, settings):
    log.info("%d trained parameters travel%s", len(travel.trained),
             f", with {len(travel.rest)} other state variables" if travel.rest else "")
    if travel.home:
        some = ", ".join(travel.home[:4]) + (", ..." if len(travel.home) > 4 else "")
        log.info("%d state variables stay at home: %s. The exported model has the server's own values of them.",
                 len(travel.home), some)
    if not settings.export:
        log.warning("the run configuration has no key export: the averaged model is not written")
