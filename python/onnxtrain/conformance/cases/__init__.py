"""All cases of the suite, by subject."""

import fnmatch

from . import (
    broken,
    control_flow,
    gradient_nodes,
    initialization,
    losses,
    modes,
    own_optimizers,
    random_numbers,
    recipes,
    sections,
    standard_optimizers,
    types_and_shapes,
)

SUBJECTS = (
    standard_optimizers,
    own_optimizers,
    losses,
    gradient_nodes,
    initialization,
    sections,
    modes,
    random_numbers,
    recipes,
    types_and_shapes,
    control_flow,
    broken,
)


def all_cases(only="*"):
    """Every case whose name fits the glob, in order; names are unique."""
    made = [case for subject in SUBJECTS for case in subject.cases()]
    names = [c.name for c in made]
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)
    return [case.finished() for case in made if fnmatch.fnmatch(case.name, only)]
