"""Time and memory of from_torch and to_torch on models of real size:  python tests/pytorch/size.py [resnet50|bert_base]...

Each model runs in a process of its own. `beyond export` is the whole call minus the two torch.export calls in it; `peak` is
how far resident memory grew during the call, over the process that holds module and optimizer (for to_torch: the file's model
too), in multiples of the training model: parameters and AdamW's two moments.
"""

import subprocess
import sys
import time
import warnings

import torch
import torch.nn as nn

warnings.filterwarnings("ignore")


class Bottleneck(nn.Module):
    def __init__(self, i, w, stride):
        super().__init__()
        o = 4 * w
        self.body = nn.Sequential(nn.Conv2d(i, w, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU(True), nn.Conv2d(w, w, 3, stride, 1, bias=False),
                                  nn.BatchNorm2d(w), nn.ReLU(True), nn.Conv2d(w, o, 1, bias=False), nn.BatchNorm2d(o))
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return torch.relu(self.body(x) + self.down(x))


def resnet50():
    layers, i = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for w, n, s in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(n):
            layers.append(Bottleneck(i, w, s if k == 0 else 1))
            i = 4 * w
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)), torch.randn(4, 3, 64, 64), torch.randint(0, 1000, (4,))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(30522, 768, padding_idx=0), nn.Embedding(512, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.1, "gelu", batch_first=True)
        self.norm, self.drop, self.body = nn.LayerNorm(768), nn.Dropout(0.1), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        self.head = nn.Linear(768, 2)

    def forward(self, ids):
        x = self.word(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.body(self.drop(self.norm(x)))[:, 0])


def bert_base():
    return Bert(), torch.randint(1, 30000, (4, 32)), torch.randint(0, 2, (4,))


def resident(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(key + ":"))


def measured(f):
    """(result, seconds, growth of resident memory at its peak in MiB)."""
    with open("/proc/self/clear_refs", "w") as c:
        c.write("5")  # the peak starts again
    before, t = resident("VmRSS"), time.time()
    result = f()
    return result, time.time() - t, resident("VmHWM") - before


def measure(name):
    import onnxtrain as ot
    from onnxtrain.torch import versions

    torch.manual_seed(0)
    module, x, y = globals()[name]()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    loss = nn.CrossEntropyLoss()
    for _ in range(2):
        optimizer.zero_grad()
        loss(module(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()
    spent = []
    inner = versions.export

    def timed(*args):
        t = time.time()
        try:
            return inner(*args)
        finally:
            spent.append(time.time() - t)

    versions.export = timed
    size = sum(p.numel() * p.element_size() for p in module.parameters()) / 2**20
    model, total, peak = measured(lambda: ot.from_torch(module, x, y, loss, optimizer))
    print(f"{name:10s} parameters {size:5.0f} MiB, training model {3 * size:5.0f} MiB\n"
          f"  from_torch {total:5.1f} s, torch.export {sum(spent):5.1f} s, beyond export {total - sum(spent):5.1f} s; "
          f"peak +{peak:5.0f} MiB = {peak / 3 / size:.2f} x training model = {peak / size:.1f} x parameters", flush=True)
    made, total, peak = measured(lambda: ot.to_torch(model))
    print(f"  to_torch   {total:5.1f} s; peak +{peak:5.0f} MiB = {peak / 3 / size:.2f} x training model = {peak / size:.1f} x parameters "
          f"({type(made.optimizer).__name__}, {sum(p.numel() for p in made.module.parameters())} parameters)", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        measure(sys.argv[2])
    else:
        for n in sys.argv[1:] or ["resnet50", "bert_base"]:
            subprocess.run([sys.executable, __file__, "--one", n], check=True)
