"""A strategy of Flower's around which replies are looked at: one that does not fit is left out and said.

The strategy itself gets the trained parameters. Other state of the clients is averaged here (see travel.py).
"""

import logging
from collections import Counter

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import Strategy
from flwr.serverapp.strategy.strategy_utils import aggregate_arrayrecords

from ..errors import Error, UsageError
from .travel import REST, is_float, middle, to_array

log = logging.getLogger("flwr")


def checked(strategy, travel):
    """The strategy that was given, or an error when clients of a training file cannot do their part of it."""
    if not isinstance(strategy, Strategy):
        raise UsageError(f"a strategy is one of flwr.serverapp.strategy, not {type(strategy).__name__}", "OT5085",
                         "strategy=FedAvg()")
    names = [kind.__name__ for part in _chain(strategy) for kind in type(part).__mro__]
    if any(name.startswith("FedXgb") for name in names):
        raise UsageError("this strategy joins trees of XGBoost; a training file has parameters", "OT5085",
                         "strategy=FedAvg()")
    if _attribute(strategy, "proximal_mu", 0):
        raise UsageError("FedProx asks the clients for a proximal term, which the training file does not have",
                         "OT5085", "strategy=FedAvg()")
    if travel.rest and any(name.startswith("DifferentialPrivacy") for name in names):
        raise UsageError("differential privacy covers the parameters; the other state would travel without noise",
                         "OT5085", 'travel = "trainable"')
    if type(strategy).start is not Strategy.start:
        raise UsageError(f"{type(strategy).__name__} has a start() of its own, which would not be called", "OT5085",
                         "override configure_train and aggregate_train instead")
    return Checked(strategy, travel)


def _chain(strategy):
    """The strategy and those that it wraps."""
    while strategy is not None:
        yield strategy
        strategy = getattr(strategy, "strategy", None)


def _attribute(strategy, name, default):
    return next((getattr(part, name) for part in _chain(strategy) if hasattr(part, name)), default)


class Checked(Strategy):
    def __init__(self, inner, travel):
        self.inner, self.travel = inner, travel
        self.weight = _attribute(inner, "weighted_by_key", "num-examples")
        self.rest = travel.record(travel.rest)
        self.rounds = 0  # that gave an average
        self.left_out = 0  # replies
        self._asked = set()  # nodes of this round

    def summary(self):
        self.inner.summary()

    def configure_train(self, server_round, arrays, config, grid):
        return self._sent(self.inner.configure_train(server_round, arrays, config, grid))

    def configure_evaluate(self, server_round, arrays, config, grid):
        return self._sent(self.inner.configure_evaluate(server_round, arrays, config, grid))

    def _sent(self, messages):
        messages = list(messages)
        for message in messages if self.travel.rest else ():
            message.content[REST] = self.rest
        self._asked = {message.metadata.dst_node_id for message in messages}
        return messages

    def aggregate_train(self, server_round, replies):
        replies = self._answers(server_round, replies)
        errors, good, rest = [r for r in replies if r.has_error()], [], []
        keys = Counter(_metric_keys(r) for r in replies if not r.has_error()).most_common(1)
        for reply in replies:
            if reply.has_error():
                continue
            try:
                rest.append(self._look(reply, keys[0][0]))
                good.append(reply)
            except Error as e:
                self._leave_out(server_round, reply, e.message)
        arrays, metrics = self.inner.aggregate_train(server_round, [*good, *errors])
        if arrays is None or not good:
            log.warning("round %d: no client gave parameters that fit; they stay as they were", server_round)
            return None, metrics
        self.travel.checked(arrays, self.travel.trained)
        if self.travel.rest:
            self.rest = self._averaged(rest)
        self.rounds += 1
        return arrays, metrics

    def aggregate_evaluate(self, server_round, replies):
        replies = self._answers(server_round, replies)
        keys = {id(r): _metric_keys(r) for r in replies if not r.has_error()}
        most = Counter(keys.values()).most_common(1)
        good = []
        for reply in replies:
            if not reply.has_error() and (keys[id(reply)] != most[0][0] or not _weight(reply, self.weight)):
                self._leave_out(server_round, reply, "its metrics are not those of the others")
            else:
                good.append(reply)
        return self.inner.aggregate_evaluate(server_round, good)

    def _answers(self, server_round, replies):
        replies = list(replies)
        silent = self._asked - {reply.metadata.src_node_id for reply in replies}
        if silent:
            log.warning("round %d: %d of %d clients did not answer: %s", server_round, len(silent), len(self._asked),
                        ", ".join(map(str, sorted(silent))))
        return replies

    def _leave_out(self, server_round, reply, why):
        self.left_out += 1
        log.warning("round %d: the reply of node %d is left out: %s", server_round, reply.metadata.src_node_id, why)

    def _look(self, reply, keys):
        """Checks a reply of a training; takes out what is not for the strategy: (weight, name -> value)."""
        content = reply.content
        own = [name for name in content.array_records if name != REST]
        if len(own) != 1 or _metric_keys(reply) != keys or not {self.weight, "train_loss"} <= set(keys):
            raise UsageError("it is not the answer of a client_app of onnxtrain", "OT5083")
        weight = _weight(reply, self.weight)
        if not weight:
            raise UsageError(f"its {self.weight} is no positive number", "OT5083")
        if not np.all(np.isfinite(next(iter(content.metric_records.values()))["train_loss"])):
            raise UsageError("its loss is not finite", "OT5083")
        self.travel.checked(content[own[0]], self.travel.trained)
        values = self.travel.checked(content.array_records.get(REST, {}), self.travel.rest)
        if REST in content:
            del content[REST]
        return weight, values

    def _averaged(self, rest):
        """The state beside the parameters: Flower's weighted mean, the weighted median for integers."""
        like, weights = self.travel.like, [weight for weight, _ in rest]
        floats = [n for n in self.travel.rest if is_float(like[n])]
        records = [RecordDict({"arrays": ArrayRecord({n: to_array(values[n]) for n in floats}),
                               "metrics": MetricRecord({"w": weight})}) for weight, values in rest]
        made = aggregate_arrayrecords(records, "w") if floats else ArrayRecord()
        for name in set(self.travel.rest) - set(floats):
            made[name] = Array(middle([to_array(values[name]).numpy() for _, values in rest], weights))
        return made


def _metric_keys(reply):
    records = list(reply.content.metric_records.values())
    return tuple(sorted(records[0])) if len(records) == 1 else ()


def _weight(reply, key):
    """The weight of a reply; 0 when it is none."""
    value = next(iter(reply.content.metric_records.values()), {}).get(key)
    return value if isinstance(value, (int, float)) and np.isfinite(value) and value > 0 else 0
