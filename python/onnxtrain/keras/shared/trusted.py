"""What a config may name: nothing in it is run or imported on its word. For `.keras` and `.h5`, and for the config that
a training file carries."""

import keras

_DEEPEST = 200
_OWN = ("keras", "keras_hub", "tf_keras", "builtins")
_NO_PARTS = {"config", "utils", "saving", "distribution", "datasets", "callbacks", "export", "tree", "visualization",
             "wrappers", "preprocessing"}  # of Keras: they load, save, download and change settings
_CODE = ("Lambda", "__lambda__")
_EXTERNAL = ("TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer")


class Untrusted(Exception):
    """kind: "code", "class" or "depth"; what: in words."""

    def __init__(self, kind, what):
        super().__init__(what)
        self.kind, self.what = kind, what


def check(config, depth=0):
    """Raises Untrusted for code, for what is neither Keras' nor registered, and for endless nesting."""
    if depth > _DEEPEST:
        raise Untrusted("depth", "its config is nested too deeply")
    if isinstance(config, list):
        for v in config:
            check(v, depth + 1)
    if not isinstance(config, dict):
        return
    kind = config.get("class_name")
    if kind is not None:
        _check_class(str(kind).strip(), config)
    for v in config.values():
        check(v, depth + 1)


def holds_code(config):
    """Whether a config carries Python bytecode (a Lambda layer's)."""
    if isinstance(config, dict):
        return str(config.get("class_name")).rpartition(".")[2] in _CODE or any(map(holds_code, config.values()))
    return isinstance(config, list) and any(map(holds_code, config))


def _check_class(kind, config):
    last = kind.rpartition(".")[2]
    if last in _CODE:
        raise Untrusted("code", "a Lambda layer, which holds Python bytecode: it is not run")
    if last in _EXTERNAL:
        raise Untrusted("code", f"a {last}, which is made of code: it is not run")
    module = config.get("module")
    if not isinstance(module, str):
        return
    name = config.get("config") if kind == "function" and isinstance(config.get("config"), str) else kind
    package, *rest = module.split(".")
    if package not in _OWN:
        known = keras.saving.get_registered_object(config.get("registered_name") or f"Custom>{kind}")
        if known is None:
            raise Untrusted("class", f"{module}.{name}, which is not registered")
    elif _NO_PARTS & set(rest[1:2] if rest[:1] == ["src"] else rest[:1]):
        raise Untrusted("class", f"{module}.{name}, which is no part of a model")


def reason(e):
    """The line of an error of Keras that says what happened: it quotes the whole config before."""
    text = str(e).rpartition("Exception encountered: ")[2].strip()
    return (text.split("\n")[0] or type(e).__name__)[:300]
