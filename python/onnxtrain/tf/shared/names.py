"""Names of variables and arguments: TensorFlow and Python allow fewer than ONNX."""

import keyword
import re

_VARIABLE = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


def legal_variable_name(name):
    """The name itself where TensorFlow takes it, else one like it."""
    if _VARIABLE.match(name):
        return name
    made = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name) or "_"
    return made if _VARIABLE.match(made) else "v" + made


def identifier(name):
    """A name for an argument of a Python function."""
    made = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    made = "_" + made if made[0].isdigit() else made
    return made + "_" if keyword.iskeyword(made) else made


def distinct(names, legal):
    """{name: a legal one}, all different; names that are legal stand as they are."""
    made = {n: n for n in names if legal(n) == n}
    taken = set(made.values())
    for n in names:
        if n in made:
            continue
        first = new = legal(n)
        k = 1
        while new in taken:
            new, k = f"{first}_{k}", k + 1
        made[n] = new
        taken.add(new)
    return {n: made[n] for n in names}
