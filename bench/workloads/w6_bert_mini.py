"""W6: an encoder of 4 layers of 256 with dropout, a classifier on the first token (BERT mini)."""

from workloads.base import Workload, adamw

WIDTH, LENGTH, WORDS = 256, 128, 30522


def network(layers, x, dropout):
    h = layers.add(layers.embedding(x, "tok", WORDS, WIDTH), layers.position("pos", LENGTH, WIDTH))
    h = layers.dropout(layers.layer_norm(h, "emb_ln", WIDTH), dropout)
    for k in range(4):
        name = f"layer{k}."
        q, k_, v = (layers.linear(h, name + part, WIDTH, WIDTH) for part in "qkv")
        a = layers.linear(layers.attention(q, k_, v, 4, False, dropout), name + "o", WIDTH, WIDTH)
        h = layers.layer_norm(layers.add(h, layers.dropout(a, dropout)), name + "ln1", WIDTH)
        f = layers.gelu(layers.linear(h, name + "ff1", WIDTH, 4 * WIDTH))
        f = layers.linear(f, name + "ff2", 4 * WIDTH, WIDTH)
        h = layers.layer_norm(layers.add(h, layers.dropout(f, dropout)), name + "ln2", WIDTH)
    pooled = layers.tanh(layers.linear(layers.first_token(h), "pooler", WIDTH, WIDTH))
    return layers.linear(layers.dropout(pooled, dropout), "cls", WIDTH, 2)


WORKLOAD = Workload("W6", "bert-mini", "8x128, AdamW", network, (8, LENGTH), 2, adamw(), vocabulary=WORDS, dropout=0.1)
