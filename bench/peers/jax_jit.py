"""JAX: one jitted step whose state is donated, channels last."""

import os

from peers import channels_last
from peers.base import Peer


def update(o, parameters, moments, gradients):
    """One step of the optimizer `o` -> (parameters, moments)."""
    import jax
    from jax import numpy as jnp

    tree_map = jax.tree_util.tree_map
    if o.kind == "sgd":
        if o.weight_decay:
            gradients = tree_map(lambda g, p: g + o.weight_decay * p, gradients, parameters)
        if o.momentum:
            gradients = tree_map(lambda m, g: o.momentum * m + g, moments["m"], gradients)
            moments = {"m": gradients}
        return tree_map(lambda p, g: p - o.lr * g, parameters, gradients), moments
    t = moments["t"] + 1
    m = tree_map(lambda m, g: o.beta1 * m + (1 - o.beta1) * g, moments["m"], gradients)
    v = tree_map(lambda v, g: o.beta2 * v + (1 - o.beta2) * g * g, moments["v"], gradients)
    first, second = 1 / (1 - o.beta1**t), 1 / (1 - o.beta2**t)
    decay = 1 - o.lr * o.weight_decay
    parameters = tree_map(lambda p, m, v: p * decay - o.lr * (m * first) / (jnp.sqrt(v * second) + o.eps),
                          parameters, m, v)
    return parameters, {"m": m, "v": v, "t": t}


class JaxJit(Peer):
    title = "JAX"
    package = "jax"
    environment = "jax"

    def prepare(self, workload):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        if self.threads == 1:
            os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        import jax
        from jax import numpy as jnp

        if workload.dropout:
            jax.config.update("jax_default_prng_impl", "rbg")  # faster here than the default, threefry
        x, labels = workload.data()
        self.x = jnp.asarray(channels_last.image_batch(x), jnp.int32 if workload.vocabulary else jnp.float32)
        self.labels = jnp.asarray(labels, jnp.int32)
        parameters = {name: jnp.asarray(v) for name, v in channels_last.parameters(workload).items()}
        running = {name: jnp.asarray(v) for name, v in workload.running().items()}
        moments = {key: {name: jnp.zeros_like(v) for name, v in parameters.items()}
                   for key in "mv"[:workload.optimizer.moments]}
        if workload.optimizer.kind != "sgd":
            moments["t"] = jnp.zeros((), jnp.float32)
        self.state = parameters, running, moments, jax.random.key(0)
        self.run = jax.jit(self._step_of(workload), donate_argnums=0)

    def _step_of(self, workload):
        import jax
        from jax import numpy as jnp

        from peers.jax_layers import JaxLayers

        def loss_of(parameters, running, key, x, labels):
            layers = JaxLayers(parameters, running, key)
            logs = jax.nn.log_softmax(workload.build(layers, x), -1)
            return -jnp.mean(jnp.take_along_axis(logs, labels[..., None], -1)), layers.updated

        def step(state, x, labels):
            parameters, running, moments, key = state
            key, now = jax.random.split(key) if workload.dropout else (key, key)
            found = jax.value_and_grad(loss_of, has_aux=True)(parameters, running, now, x, labels)
            (loss, running), gradients = found
            parameters, moments = update(workload.optimizer, parameters, moments, gradients)
            return (parameters, running, moments, key), loss

        return step

    def step(self, n):
        run, state, x, labels = self.run, self.state, self.x, self.labels
        for _ in range(n):
            state, loss = run(state, x, labels)
        self.state = state
        return float(loss)
