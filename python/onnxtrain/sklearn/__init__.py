"""scikit-learn estimators to training ONNX files and back (docs/sklearn.md)."""
