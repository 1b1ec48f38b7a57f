"""Operations of keras.ops and layers of Keras as nodes: one module per theme, two tables."""

from . import (  # noqa: F401 - they fill the table
    activations,
    casts,
    colour,
    control,
    elementwise,
    image,
    index,
    loops,
    losses,
    nn,
    products,
    reduce,
    sampling,
    shape,
)
