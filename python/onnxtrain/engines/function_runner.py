"""What engines share whose step is a function: values of the device in, values of the device out."""


class FunctionRunner:
    """State as values of the device. An engine adds `to_device(name, array)`, `to_host(value)` and `call(given)`:
    outputs of the step by name, for the data in `given` and the state in `self.now`."""

    def __init__(self, step):
        self.step_file = step
        self.now = {}
        self.set_state(step.state)

    def set_state(self, values):
        self.now |= {k: self.to_device(k, v) for k, v in values.items()}

    def state(self):
        return {k: self.to_host(v) for k, v in self.now.items()}

    def borrow(self, other, names):
        """State that another runner of this engine has, without a copy."""
        self.now |= {k: other.now[k] for k in names}

    def undo(self):
        self.now = self.before

    def kept(self, values):
        """Results by name as state of the next step."""
        return values

    def step(self, feeds):
        s = self.step_file
        self.before = dict(self.now)
        got = self.call({k: self.to_device(k, feeds[k]) for k in s.data})
        self.now |= self.kept({k: got[out] for out, names in s.feedback.items() for k in names})
        return {k: self.to_host(got[k]) for k in s.plain}
