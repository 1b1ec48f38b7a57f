"""What every SuperNode runs."""

import onnxtrain.flower

from .task import file, rows

app = onnxtrain.flower.client_app(file, rows, threads=1)
