"""TensorFlow: a training step in one tf.function (what Keras wraps), channels last."""

import os

import numpy as np

from peers import channels_last
from peers.base import Peer


class Updates:
    """The optimizer's moments and its in-place updates."""

    def __init__(self, o, parameters):
        import tensorflow as tf

        self.o, self.apply = o, tf.raw_ops
        self.moments = [{name: tf.Variable(tf.zeros_like(v)) for name, v in parameters.items()}
                        for _ in range(o.moments)]
        self.powers = [tf.Variable(o.beta1), tf.Variable(o.beta2)]

    def one(self, name, p, g):
        o = self.o
        if o.kind != "sgd":
            m, v = (moment[name].handle for moment in self.moments)
            if o.weight_decay:
                p.assign(p * (1 - o.lr * o.weight_decay))
            self.apply.ResourceApplyAdam(var=p.handle, m=m, v=v, beta1_power=self.powers[0], beta2_power=self.powers[1],
                                         lr=o.lr, beta1=o.beta1, beta2=o.beta2, epsilon=o.eps, grad=g)
            return
        if o.weight_decay:
            g = g + o.weight_decay * p
        if o.momentum:
            self.apply.ResourceApplyMomentum(var=p.handle, accum=self.moments[0][name].handle, lr=o.lr, grad=g,
                                             momentum=o.momentum)
        else:
            self.apply.ResourceApplyGradientDescent(var=p.handle, alpha=o.lr, delta=g)

    def behind_all(self):
        if self.o.kind != "sgd":
            for power, beta in zip(self.powers, (self.o.beta1, self.o.beta2), strict=True):
                power.assign(power * beta)


class TfFunction(Peer):
    title = "TensorFlow"
    package = "tensorflow"
    environment = "tf"
    xla = False

    def version(self):
        import tensorflow

        return tensorflow.__version__

    def prepare(self, workload):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        tf.config.threading.set_inter_op_parallelism_threads(self.threads)
        x, labels = workload.data()
        self.x = tf.constant(x.astype(np.int32) if workload.vocabulary else channels_last.image_batch(x))
        self.labels = tf.constant(labels.reshape(-1).astype(np.int32))
        parameters = {name: tf.Variable(v) for name, v in channels_last.parameters(workload).items()}
        running = {name: tf.Variable(v) for name, v in workload.running().items()}
        updates = Updates(workload.optimizer, parameters)
        self.alive = parameters, running, updates  # a tf.function holds its variables weakly
        self.run = tf.function(self._step_of(workload, parameters, running, updates), jit_compile=self.xla)

    def _step_of(self, workload, parameters, running, updates):
        import tensorflow as tf

        from peers.tf_layers import TfLayers

        def step(x, labels):
            with tf.GradientTape() as tape:
                layers = TfLayers(parameters, running, self.xla)
                logits = workload.build(layers, x)
                rows = tf.reshape(logits, (-1, logits.shape[-1]))
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, rows))
            for (name, p), g in zip(parameters.items(), tape.gradient(loss, list(parameters.values())), strict=True):
                updates.one(name, p, tf.convert_to_tensor(g))  # a dense gradient of embeddings, as in other peers
            updates.behind_all()
            for variable, now in layers.updates:
                variable.assign_sub(0.1 * (variable - now))
            return loss

        return step

    def step(self, n):
        run, x, labels = self.run, self.x, self.labels
        for _ in range(n):
            loss = run(x, labels)
        return float(loss)
