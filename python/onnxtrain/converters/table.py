"""Tables of lowerings: a function per operation, entered by a decorator."""


def entered_in(table):
    """A decorator that enters a function under each of its names: `@lower("Add", "AddV2")`."""

    def named(*names):
        def enter(f):
            for name in names:
                table[name] = f
            return f

        return enter

    return named
