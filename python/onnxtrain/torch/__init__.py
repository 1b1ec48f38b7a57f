"""The PyTorch converter, both ways: `from_torch/` writes a live training into a file, `to_torch/` makes one from a
file, `shared/` has what both need. Nothing of torch is imported before it is called (extra `onnxtrain[torch]`)."""
