"""Lion takes signs: the rule of tests/with_keras/signs.py accepts those that float32 does not know, and no others."""

import numpy as np
import pytest

import round_trip as trips
import signs


def test_with_the_same_signs():
    difference, what, _ = trips.with_the_same_signs("mlp", "lion")
    assert difference <= trips.LIMIT, what


def test_a_sign_that_float64_knows():
    model, x, y = trips.fresh("mlp", "lion")
    other, *_ = trips.fresh("mlp", "lion")
    trips.train(other, x, y, 1)
    there = [np.array(v) for v in other.trainable_weights]
    follower = signs.Follower(model, x, y)
    moves = there[0] - np.array(model.trainable_weights[0])
    at = np.unravel_index(int(np.abs(moves).argmax()), moves.shape)
    there[0][at] -= 2 * moves[at]  # the step taken the other way
    with pytest.raises(signs.Decided, match="in float64"):
        follower.step(trips.train, there)
