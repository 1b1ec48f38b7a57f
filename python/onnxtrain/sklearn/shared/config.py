"""A fitted estimator as a JSON object and back: class names, parameters, fitted attributes with every bit of their
arrays. No pickle: what a file names is looked up in `classes`, and objects are made without running their code."""

import base64
import math

import numpy as np

from ...errors import ModelError
from . import classes

_LEFT_OUT = {"_loss_function_", "_best_coefs", "_best_intercepts", "_base_loss"}  # made anew where they are needed
_NUMBERS = "biuf"
_DEEPEST = 40
_TYPES = {t.__name__: t for t in (bool, int, float, str, object)}  # make_column_selector(dtype_include=float)


class Writer:
    """Objects -> JSON. refuse(path, reason) is called for what has no form; trained: ids of arrays that are state
    variables of the file, whose values are there."""

    def __init__(self, refuse, trained=()):
        self.refuse, self.trained, self.arrays, self._seen = refuse, set(trained), [], {}

    def write(self, x, path=""):
        for kind, form in ((bool, self._plain), (int, self._plain), (float, self._float), (str, self._plain),
                           (list, self._list), (tuple, self._list), (dict, self._dict), (slice, self._slice)):
            if type(x) is kind:
                return form(x, path)
        if x is None:
            return None
        if isinstance(x, np.generic):
            return {"scalar": self._array(np.asarray(x), path)}
        if isinstance(x, np.ndarray):
            return self._array(x, path)
        if isinstance(x, np.random.RandomState):
            name, keys, *rest = x.get_state()
            return {"random_state": [name, self._array(keys, path), *rest]}
        if isinstance(x, np.dtype) or isinstance(x, type) and issubclass(x, np.generic):
            return {"dtype": np.dtype(x).str, "is_type": isinstance(x, type)}
        if isinstance(x, type) and _TYPES.get(x.__name__) is x:
            return {"type": x.__name__}
        if classes.is_known(type(x)):
            return self._object(x, path)
        if classes.function_name(x):
            return {"function": classes.function_name(x)}
        return self.refuse(path, f"holds {type(x).__module__}.{type(x).__qualname__}, which has no form in a file")

    def _plain(self, x, path):
        return x

    def _float(self, x, path):
        return x if math.isfinite(x) else {"float": str(x)}

    def _list(self, x, path):
        made = [self.write(v, f"{path}[{k}]") for k, v in enumerate(x)]
        return made if type(x) is list else {"tuple": made}

    def _dict(self, x, path):
        return {"dict": [[self.write(k, path), self.write(v, f"{path}[{k!r}]")] for k, v in x.items()]}

    def _slice(self, x, path):
        return {"slice": [self.write(v, path) for v in (x.start, x.stop, x.step)]}

    def _object(self, x, path):
        parts = {k: self.write(v, f"{path}.{k}" if path else k) for k, v in vars(x).items() if k not in _LEFT_OUT}
        return {"class": type(x).__name__, "is": parts}

    def _array(self, a, path):
        """One array is written once, however often it is named: scikit-learn shares some on purpose."""
        if id(a) in self.trained:
            return {"trained": list(a.shape), "type": a.dtype.str}
        if id(a) not in self._seen:
            entry = {"type": a.dtype.str, "shape": list(a.shape)}
            if a.dtype.kind in _NUMBERS:
                entry["bytes"] = base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()
            elif a.dtype.kind in "OU":
                entry["items"] = [self.write(v, path) for v in a.ravel().tolist()]
            else:
                return self.refuse(path, f"is an array of {a.dtype}")
            self._seen[id(a)] = len(self.arrays)
            self.arrays.append(entry)
            self._seen[id(a), "kept"] = a  # its id stays its own
        return {"array": self._seen[id(a)]}


class Hole:
    """An array that is a state variable of the file."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    def filled(self, value):
        return np.array(value, dtype=self.dtype).reshape(self.shape)


class Reader:
    """JSON -> objects; a damaged or hostile object is one ModelError."""

    def __init__(self, arrays):
        self.arrays, self._made = arrays, {}

    def read(self, j, depth=0):
        if depth > _DEEPEST:
            raise ValueError("it is nested too deeply")
        if j is None or isinstance(j, (bool, int, float, str)):
            return j
        if isinstance(j, list):
            return [self.read(v, depth + 1) for v in j]
        kind = next(iter(j))
        form = getattr(self, "_" + kind, None) if kind in _FORMS else None
        if form is None:
            raise ValueError(f"there is no form '{kind}'")
        return form(j, depth + 1)

    def _float(self, j, depth):
        return float(j["float"])

    def _tuple(self, j, depth):
        return tuple(self.read(j["tuple"], depth))

    def _dict(self, j, depth):
        return {self.read(k, depth): self.read(v, depth) for k, v in j["dict"]}

    def _slice(self, j, depth):
        return slice(*(self.read(v, depth) for v in j["slice"]))

    def _scalar(self, j, depth):
        return self.read(j["scalar"], depth)[()]

    def _dtype(self, j, depth):
        found = np.dtype(object) if j["dtype"] == "|O" else _plain_dtype(j["dtype"])  # of texts; it holds no values
        return found.type if j["is_type"] else found

    def _type(self, j, depth):
        return _TYPES[j["type"]]

    def _random_state(self, j, depth):
        name, keys, *rest = j["random_state"]
        made = np.random.RandomState()
        made.set_state((name, self.read(keys, depth), *rest))
        return made

    def _function(self, j, depth):
        found = classes.find_function(j["function"])
        if found is None:
            raise ValueError(f"the function '{j['function']}' is not one that a file may name")
        return found

    def _trained(self, j, depth):
        return Hole([int(n) for n in j["trained"]], _plain_dtype(j["type"]))

    def _class(self, j, depth):
        cls = classes.find(j["class"])
        if cls is None:
            raise ValueError(f"the class '{j['class']}' is not one that a file may name")
        made = cls.__new__(cls)
        vars(made).update({str(k): self.read(v, depth) for k, v in j["is"].items()})
        return made

    def _array(self, j, depth):
        k = j["array"]
        if k not in self._made:
            self._made[k] = self._new_array(self.arrays[k], depth)
        return self._made[k]

    def _new_array(self, entry, depth):
        dtype, shape = np.dtype(entry["type"]), [int(n) for n in entry["shape"]]
        if "bytes" in entry:
            data = base64.b64decode(entry["bytes"], validate=True)
            return np.frombuffer(data, _plain_dtype(entry["type"])).reshape(shape).copy()
        items = [self.read(v, depth) for v in entry["items"]]
        longest = max((len(v) for v in items if isinstance(v, str)), default=0)
        if dtype.kind != "O" and (dtype.kind != "U" or dtype.itemsize > 4 * longest + 1024):
            raise ValueError(f"an array of texts has the element type '{entry['type'][:20]}'")
        made = np.empty(len(items), dtype)
        made[:] = items
        return made.reshape(shape)


_FORMS = {"float", "tuple", "dict", "slice", "scalar", "dtype", "random_state", "function", "trained", "class", "array",
          "type"}


def _plain_dtype(text):
    found = np.dtype(text)
    if found.kind not in _NUMBERS + "U":
        raise ValueError(f"the element type '{text}' is not one of numbers")
    return found


def read(info, key):
    """The estimator of a file's JSON object, with Holes where the file's state variables go."""
    try:
        return Reader(info["arrays"]).read(info["estimator"])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError,
            MemoryError) as e:
        raise ModelError(f"the metadata '{key}' is damaged: {e}", "OT1714", "convert the estimator again") from None
