"""How a check of the sources ends."""


def report(problems, summary):
    """Prints every problem and the summary; the exit code."""
    for problem in problems:
        print(problem)
    print(f"{summary}, {len(problems)} problems")
    return 1 if problems else 0
