"""Images of 8 x 8 noise with one bright channel, which is their class."""

import numpy as np


def ppm(path, kind, seed):
    pixels = np.random.default_rng(seed).integers(0, 60, (8, 8, 3)).astype(np.uint8)
    pixels[:, :, kind] += 150
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"P6\n8 8\n255\n" + pixels.tobytes())
