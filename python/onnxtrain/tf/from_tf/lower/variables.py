"""Variables: reads are the initializer, assignments are new values of the file's state."""

from ..values import Unsupported
from .table import op


@op("ReadVariableOp")
def read(n):
    s = n.walk.value_of(n[0])
    made = s.copy()
    made.shape = made.shape if made.shape.rank is not None else n.shape
    return made


@op("VarHandleOp", "VarIsInitializedOp")
def handle(n):
    raise Unsupported("it makes a variable inside the function")


@op("AssignVariableOp")
def assign(n):
    n.walk.assign(n[0], n[1])
    return []


@op("AssignAddVariableOp", "AssignSubVariableOp")
def assign_add(n):
    old = n.walk.value_of(n[0])
    kind = "Add" if n.op.type == "AssignAddVariableOp" else "Sub"
    made = n.e.op(kind, n.w.plain(old), n.plain(1))
    n.walk.assign(n[0], n.w.sym(made, old.dtype, old.shape))
    return []


@op("NoOp", "Assert", "PrintV2", "Print")
def nothing(n):
    return []
