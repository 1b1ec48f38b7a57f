"""Trains two towers with a loss that is an ONNX graph, and looks up the right one of 200 items for 200 new queries."""

import pathlib

import numpy as np

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent


def found(model, query, item):
    """How often the right one of all items is the nearest, and among the five nearest."""
    out = ot.Session(model).run({"query": query, "item": item})
    scores = out["query_vector"] @ out["item_vector"].T
    place = (scores > np.diag(scores)[:, None]).sum(1)
    return (place < 1).mean(), (place < 5).mean()


def main(epochs=15):
    data = np.load(HERE / "pairs.npz")
    train = {"query": data["query_train"], "item": data["item_train"]}
    test = data["query_test"], data["item_test"]
    model = ot.load(HERE / "towers.onnx")
    print("untrained   first %.1f %%   among five %.1f %%" % tuple(100 * v for v in found(model, *test)))

    t = ot.Trainer(ot.prepare(model, loss=HERE / "in_batch.onnx", optimizer=ot.AdamW(lr=3e-3)))
    history = t.fit(train, epochs=epochs, batch_size=100)
    for epoch in (1, 5, epochs):
        print(f"epoch {epoch:2d}    loss {history['loss'][epoch - 1]:.3f}")
    first, five = found(t.model(), *test)
    print("trained     first %.1f %%   among five %.1f %%" % (100 * first, 100 * five))
    return {"first": first, "five": five}


if __name__ == "__main__":
    main()
