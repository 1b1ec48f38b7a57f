"""The PyTorch road, both ways. Nothing here is imported by `import onnxtrain`; it needs the extra `onnxtrain[torch]`."""
