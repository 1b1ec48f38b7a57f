"""What each ONNX operator is in PyTorch. One module per family; table.py joins them."""
