"""The metadata of files that come from PyTorch (docs/decisions/0050-torch-files.md)."""

KEY = "onnxtrain.torch"
