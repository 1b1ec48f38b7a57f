"""Attributes that our Python objects do not have."""

from mistake import Mistake as M


def P(name, typed, code, says, fix=None, then=None):
    return M(name, typed, code, says, fix, then, python=True)


MODEL, STEP = "m = ot.load('mlp.onnx').compile(); ", "t = ot.Trainer('mlp.train.onnx'); "
A = "UnknownAttributeError"
TYPED = "model = ot.load('mlp.onnx').compile(); trainer = ot.Trainer('mlp.train.onnx'); x, y = x, y; "


def misspelt(name, made, wrong, right, value):
    """An attribute whose right name is printed."""
    typed = f"{made}; o.{wrong} = {value}"
    return P(name, typed, A, [f"'{wrong}'", f"'{right}'"], right, f"{made}; o.{{fix}} = {value}")


CASES = [
    P("the optimizer of a model", MODEL + "m.optimizer.learning_rate = 1e-4", A, ["'optimizer'", "Model"],
      "model.trainer().lr = 1e-4", TYPED + "{fix}"),
    P("an optimizer set on a model", MODEL + "m.optimizer = ot.SGD(lr=1)", A, ["'optimizer'"],
      "model.compile(optimizer=ot.AdamW(lr=1e-4))", TYPED + "{fix}"),
    P("a loss set on a model", MODEL + "m.loss = 'mse'", A, ["'loss'"], "model.compile(loss='mse')", TYPED + "{fix}"),
    P("the optimizer of a trainer", STEP + "t.optimizer.param_groups[0]['lr'] = 1", A, ["'optimizer'", "Trainer"],
      "trainer.lr = 1e-4", TYPED + "{fix}"),
    misspelt("a learning rate with a dash too many", "o = ot.Trainer('mlp.train.onnx')", "lr_", "lr", "1e-4"),
    misspelt("a learning rate misspelt", "o = ot.Trainer('mlp.train.onnx')", "learning_rat", "learning_rate", "1e-4"),
    misspelt("weight decay misspelt", "o = ot.AdamW(lr=1e-3)", "weigth_decay", "weight_decay", "0.1"),
    misspelt("a beta of AdamW", "o = ot.AdamW(lr=1e-3)", "beta1", "betas", "(0.5, 0.9)"),
    misspelt("a schedule's numbers misspelt", "o = ot.Schedule('cosine')", "number", "numbers", "{}"),
    misspelt("a term's weight misspelt", "o = ot.losses.MSE()", "wieght", "weight", "2"),
    misspelt("patience of a callback misspelt", "o = ot.callbacks.EarlyStopping()", "patiense", "patience", "3"),
    misspelt("epochs of an estimator misspelt", "o = ot.OnnxClassifier('mlp.onnx')", "n_epochs", "epochs", "3"),
    P("the state as a whole", STEP + "t.state = {}", A, ["'state'"], "trainer.state['NAME'] = array",
      TYPED + "trainer.state['fc1.bias'] = np.zeros(16, 'f4')"),
    P("a weight as an attribute", STEP + "t.state.fc1 = 1", A, ["'fc1'", "State"]),
    P("the parameters as a whole", "m = ot.load('mlp.onnx'); m.parameters = {}", A, ["'parameters'"],
      "model.parameters['NAME'] = array", TYPED + "model.parameters['fc1.bias'] = np.zeros(16, 'f4')"),
    P("a method that is assigned", MODEL + "m.fit = 3", A, ["'fit'", "method"], "model.fit(...)",
      TYPED + "model.fit(x, y, epochs=1)"),
    P("batch size of a trainer", STEP + "t.batch_size = 8", A, ["'batch_size'"], "trainer.fit(x, y, batch_size=32)",
      TYPED + "{fix}"),
    P("the model of a session", "s = ot.Session('mlp.onnx'); s.model = 1", A, ["'model'", "read only"]),
]
