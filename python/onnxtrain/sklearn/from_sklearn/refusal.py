"""What cannot be converted, in words: the step of the pipeline, its class and the reason."""

from ...errors import UsageError

CODE = "OT1760"


class Who:
    """A step of the pipeline, for messages."""

    def __init__(self, estimator, path=""):
        self.estimator, self.path = estimator, path

    def part(self, estimator, name):
        return Who(estimator, f"{self.path}.{name}" if self.path else str(name))

    @property
    def label(self):
        kind = type(self.estimator).__name__
        return f"step '{self.path}' ({kind})" if self.path else kind

    def refuse(self, reason, hint=""):
        raise UsageError(f"{self.label} cannot be converted: {reason}", CODE, hint)
