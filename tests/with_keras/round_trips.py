"""The table of round trips in docs/keras.md: 5 steps in Keras, 5 here, 5 in Keras against 15 in Keras.

    .venv-tf/bin/python tests/with_keras/round_trips.py [--models a,b] [--optimizers x,y] [--part K/N]

Every model with two optimizers, every optimizer with four models, every schedule and every other setting with three.
A difference above 1e-5 must be within 8 times what Keras differs by from itself when its weights change in their last
bit (three runs).
"""

import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import round_trip as trips  # noqa: E402
import settings  # noqa: E402
import signs  # noqa: E402

FOUR = ["mlp", "bag_of_words", "cnn_batchnorm", "lstm_masked_left"]
THREE = FOUR[:3]


def plan(models, optimizers):
    pairs = [(m, "adam") for m in trips.MODELS]
    pairs += [(m, o) for o in settings.OPTIMIZERS for m in FOUR]
    pairs += [(m, o) for o in [*settings.SCHEDULES, *settings.EXTRAS] for m in THREE]
    pairs = list(dict.fromkeys([*pairs, *[(m, "momentum") for m in trips.MODELS]]))
    return [(m, o) for m, o in pairs if (not models or m in models) and (not optimizers or o in optimizers)]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", default="")
    p.add_argument("--optimizers", default="")
    p.add_argument("--part", default="0/1")
    a = p.parse_args()
    k, n = map(int, a.part.split("/"))
    pairs = plan([m for m in a.models.split(",") if m], [o for o in a.optimizers.split(",") if o])[k::n]
    small, noisy, bad, worst = 0, 0, [], 0.0
    for model, optimizer in pairs:
        start = time.time()
        try:
            difference, what, noise = trips.round_trip(model, optimizer)
            good = difference <= max(trips.LIMIT, trips.SPREAD * (noise or 0))
            how = f"{difference:.2g}" + (f" at {what}, Keras' noise {noise:.2g}" if noise is not None else "")
            if not good and optimizer in signs.OPTIMIZERS:
                difference, what, undecided = trips.with_the_same_signs(model, optimizer)
                good, noise = difference <= trips.LIMIT, None
                how += f"; with the same {undecided} signs that float32 does not know {difference:.2g} at {what}"
        except Exception as e:  # noqa: BLE001 - the table goes on
            difference, noise, good, how = 0.0, None, False, str(e).strip()[:400]
        small += good and noise is None
        noisy += good and noise is not None
        worst = max(worst, difference if good and noise is None else 0.0)
        if not good:
            bad.append((model, optimizer))
        result = "ok" if good else "DIFFERS"
        print(f"{result:8s}{model:20s}{optimizer:22s}{how}  {time.time() - start:.1f} s", flush=True)
    print(f"{len(pairs)} round trips: {small} within {trips.LIMIT:g} (largest {worst:.2g}), {noisy} within Keras' own "
          f"noise, {len(bad)} differ {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
