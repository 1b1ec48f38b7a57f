"""Every backend of Keras writes the same file: graph and tensors, bit by bit (`semantics` fixed)."""

import backend_table

MODELS = ["mlp", "regularized", "bag_of_words", "lstm_masked_left"]


def test_the_same_file_without_tensorflow(capsys):
    assert backend_table.table(MODELS, ("numpy", "jax", "torch")) == len(MODELS), capsys.readouterr().out
