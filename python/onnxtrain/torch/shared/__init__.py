"""What both directions of the PyTorch converter need: versions of torch, element types, metadata."""
