"""python -m onnxtrain.engines: the lines of `onnxtrain doctor` about engines, or its JSON."""

import json
import sys

from . import listed

if sys.argv[1:2] == ["--json"]:
    facts = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    engines = {"native": ["cpu"]}
    unavailable = {}
    for name, devices, why in listed():
        if devices:
            engines[name] = list(devices)
        else:
            unavailable[name] = why
    print(json.dumps({**facts, "engines": engines, "unavailable_engines": unavailable}, indent=2))
else:
    print("engines   native")
    for name, devices, why in listed():
        print(f"          {name}: {', '.join(devices) if devices else why}")
