"""python -m onnxtrain.engines: the lines of `onnxtrain doctor` about engines."""

from . import listed

print("engines   native")
for name, devices, why in listed():
    print(f"          {name}: {', '.join(devices) if devices else why}")
