"""TensorFlow, its step compiled by XLA."""

from peers.tf_function import TfFunction


class TfXla(TfFunction):
    title = "TensorFlow XLA"
    xla = True
