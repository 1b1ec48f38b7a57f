"""The engines that bench/run.py runs, by the names of --peers."""

from peers.jax_jit import JaxJit
from peers.onnxtrain_cli import OnnxtrainCli
from peers.onnxtrain_python import OnnxtrainPython
from peers.ort_step import OrtStep
from peers.ort_training import OrtTraining
from peers.tf_function import TfFunction
from peers.tf_xla import TfXla
from peers.torch_compile import TorchCompile
from peers.torch_eager import TorchEager
from peers.torch_tuned import TorchTuned

PEERS = {"torch": TorchEager, "torch_tuned": TorchTuned, "torch_compile": TorchCompile, "jax": JaxJit,
         "tf": TfFunction, "tf_xla": TfXla, "ort_training": OrtTraining, "ort_step": OrtStep,
         "onnxtrain_cli": OnnxtrainCli, "onnxtrain": OnnxtrainPython}
OURS, REFERENCE = "onnxtrain", "torch"
