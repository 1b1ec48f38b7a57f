"""Names of values while a graph is written: each is taken once, some are kept for outputs, some change later.

An emitter adds what it writes: `part` (the graph that gets nodes now), `node`, `rename` and `makes`.
"""


class Names:
    def __init__(self):
        self.names, self.reserved = set(), set()
        self.renamed = {}

    def claim(self, wanted):
        """The wanted name, or one like it that is free."""
        name, k = wanted, 1
        while name in self.names:
            name, k = f"{wanted}_{k}", k + 1
        self.names.add(name)
        return name

    def reserve(self, names):
        """Keeps names for outputs: other values may not take them."""
        fresh = {n for n in names if n not in self.names}
        self.reserved |= fresh
        self.names |= fresh

    def claim_reserved(self, wanted):
        name = wanted if wanted in self.reserved else self.claim(wanted)
        self.reserved.discard(wanted)
        return name

    def current(self, name):
        """Today's name of a value."""
        while name in self.renamed:
            name = self.renamed[name]
        return name

    def place(self, value, wanted, part, taken):
        """Gives a value its output's name: by renaming when it is a node's own result, else by Identity."""
        name, value = self.claim_reserved(wanted), self.current(value)
        if value not in taken and self.makes(part, value):
            self.rename(value, name)
        else:
            before, self.part = self.part, part
            made = self.node("Identity", [value], named=[self.claim(name + "_")])[0]
            self.part = before
            self.rename(made, name)
        taken.add(name)
        return name
