"""Names of values while a graph is written: each is taken once, some are kept for outputs, some change later."""


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
