"""Transfer learning: a backbone that knows other digits stays as it is, a new head learns 7, 8 and 9 from 60 images."""

import pathlib

import numpy as np

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent


def learn(data, **recipe):
    """Trains on the 60 images; accuracy on the 600 others, and how far the backbone moved."""
    model = ot.load(HERE / "new_head.onnx")
    before = {n: v for n, v in model.parameters.items() if n.startswith("backbone.")}
    model.compile(loss="cross_entropy", optimizer=ot.AdamW(lr=3e-3), **recipe)
    model.fit(data["x_train"], data["y_train"] - 7, epochs=40, batch_size=10)
    moved = max(float(np.abs(model.parameters[n] - v).max()) for n, v in before.items())
    return model.evaluate(data["x_test"], data["y_test"] - 7)["accuracy"], moved


def main():
    data = dict(np.load(HERE / "data.npz"))
    frozen, still = learn(data, freeze=["backbone.*"])
    print(f"new head, backbone frozen        accuracy {frozen:.1%}   backbone moved by {still:.3f}")
    tuned, moved = learn(data)
    print(f"new head, backbone trained too   accuracy {tuned:.1%}   backbone moved by {moved:.3f}")
    scratch, _ = learn(data, reset=True)
    print(f"everything from scratch          accuracy {scratch:.1%}")
    return {"frozen": frozen, "still": still, "tuned": tuned, "scratch": scratch}


if __name__ == "__main__":
    main()
