"""Writes the files of python/tests/torch_files: trainings that from_torch made, with the losses that PyTorch gives from
there.

    python tests/pytorch/make_files.py

python/tests/test_torch_files.py steps them where PyTorch is not installed.
"""

import pathlib
import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler as lrs

import onnxtrain as ot
from trips import feeds_of, info_of, start, torch_steps

FOLDER = pathlib.Path(__file__).parents[2] / "python" / "tests" / "torch_files"
FILES = {"cnn_bn": ("momentum", lambda o: lrs.OneCycleLR(o, 0.1, total_steps=20)),
         "gpt": ("adamw", lambda o: lrs.CosineAnnealingLR(o, 12)), "lstm": ("nadam decoupled", None),
         "vqvae": ("rmsprop both", lambda o: lrs.StepLR(o, 2, 0.5)), "transformer": ("adagrad", None),
         "moe": ("radam", None), "double_mlp": ("rprop", None)}


def main():
    warnings.filterwarnings("ignore")
    FOLDER.mkdir(exist_ok=True)
    for arch, (opt, scheduler) in FILES.items():
        module, inputs, targets, loss, optimizer, _ = start(arch, opt)
        scheduler = scheduler(optimizer) if scheduler else None
        torch_steps(module, optimizer, inputs, targets, loss, 3, scheduler)
        model = ot.from_torch(module, inputs, targets, loss, optimizer, scheduler)
        info = info_of(model)
        model.save(FOLDER / f"{arch}.train.onnx")
        feeds = feeds_of(inputs, targets, info["inputs"] + info["targets"])
        losses = torch_steps(module, optimizer, inputs, targets, loss, 6, scheduler)
        after = {f"after {n}": p.detach().numpy() for n, p in list(module.named_parameters())[:2]}
        np.savez_compressed(
            FOLDER / f"{arch}.npz", losses=np.array(losses), **{f"feed {n}": v for n, v in feeds.items()}, **after
        )
        print(arch, opt, losses)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
