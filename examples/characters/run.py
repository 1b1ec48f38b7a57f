"""Trains a language model over characters on text.txt, prints its perplexity, and lets it write."""

import pathlib

import numpy as np

import onnxtrain as ot

HERE = pathlib.Path(__file__).parent


def windows(ids, length, step):
    """Pieces of the text, and the same pieces one character later: what the model has to say."""
    starts = np.arange(0, len(ids) - length, step)
    at = starts[:, None] + np.arange(length)
    return ids[at], ids[at + 1]


def write(model, characters, begin, count, rng, temperature=0.5, memory=64):
    """Draws one character after the other from the model's scores."""
    session, text = ot.Session(model), begin
    for _ in range(count):
        ids = np.array([[characters.index(c) for c in text[-memory:]]])
        scores = session.run({"ids": ids})["scores"][0, -1].astype(np.float64) / temperature
        p = np.exp(scores - scores.max())
        text += characters[rng.choice(len(p), p=p / p.sum())]
    return text


def main(epochs=24):
    model = ot.load(HERE / "characters.onnx")
    characters = model.info["metadata"]["characters"]
    ids = np.array([characters.index(c) for c in (HERE / "text.txt").read_text()])
    cut = len(ids) * 9 // 10
    x, y = windows(ids[:cut], 32, 8)
    new_x, new_y = windows(ids[cut:], 32, 32)

    t = ot.Trainer(ot.prepare(model, loss="cross_entropy", optimizer=ot.AdamW(lr=4e-3), clip_norm=1.0))
    print(f"{len(ids)} characters, {len(characters)} different; a blind guess has perplexity {len(characters)}")
    show = lambda e: e["epoch"] in (1, 3, 6, 12, epochs) and print(
        f"epoch {e['epoch']:2d}   perplexity {np.exp(e['loss']):6.2f}   on new text {e['valid_perplexity']:6.2f}")
    history = t.fit(x, y, valid=(new_x, new_y), epochs=epochs, batch_size=32, on_epoch=show)
    print(write(t.model(), characters, "The keeper", 150, np.random.default_rng(0)).replace("\n", " "))
    return {"perplexity": float(np.exp(history["loss"][-1])), "new": min(history["valid_perplexity"]),
            "blind": len(characters)}


if __name__ == "__main__":
    main()
