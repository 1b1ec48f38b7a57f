"""Operations of TensorFlow, by theme; table.py says how one is written."""
