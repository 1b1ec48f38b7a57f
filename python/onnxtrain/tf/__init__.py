"""TensorFlow, both ways: `from_tf` (a SavedModel or a function to a file), `to_tf` (a file to a tf.Module)."""
