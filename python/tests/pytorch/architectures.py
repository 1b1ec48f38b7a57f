"""Small models of many kinds, with a batch of inputs, a target and a loss each: what the PyTorch road is tried on."""

import architectures_images  # noqa: F401 - each fills ZOO
import architectures_others  # noqa: F401
import architectures_sequences  # noqa: F401
from architectures_list import ZOO, target_for

__all__ = ["ZOO", "target_for"]
