"""W7: a causal language model of 6 layers of 192 over 256 characters."""

from workloads.base import Workload, adamw

LAYERS, WIDTH, LENGTH, WORDS = 6, 192, 128, 256


def network(layers, x, dropout, length=LENGTH):
    h = layers.add(layers.embedding(x, "wte", WORDS, WIDTH), layers.position("wpe", length, WIDTH))
    for k in range(LAYERS):
        name = f"h{k}."
        qkv = layers.linear(layers.layer_norm(h, name + "ln1", WIDTH), name + "qkv", WIDTH, 3 * WIDTH)
        q, k_, v = layers.split3(qkv)
        h = layers.add(h, layers.linear(layers.attention(q, k_, v, 6, True, dropout), name + "proj", WIDTH, WIDTH))
        f = layers.gelu(layers.linear(layers.layer_norm(h, name + "ln2", WIDTH), name + "ff1", WIDTH, 4 * WIDTH))
        h = layers.add(h, layers.linear(f, name + "ff2", 4 * WIDTH, WIDTH))
    return layers.linear(layers.layer_norm(h, "lnf", WIDTH), "head", WIDTH, WORDS, bias=False)


WORKLOAD = Workload("W7", "gpt-nano", "8x128, AdamW", network, (8, LENGTH), WORDS, adamw(), vocabulary=WORDS,
                    label_per_token=True)
