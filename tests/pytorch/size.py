"""Time and memory of the PyTorch road on models of real size:  python tests/pytorch/size.py [resnet50|bert_base]...

Each model runs in a process of its own, which has converted a small one before (torch.export and its imports are
loaded). `beyond export` is the whole call minus the two torch.export calls in it; in brackets processor seconds, which
a busy machine changes less. `peak` is how far resident memory grew during the call, over the process that holds module
and optimizer (on the way back: the file's model too), in multiples of the parameters, and of the training model:
parameters and AdamW's two moments, which is what the file has on disk. `mapped` is the part of it that is pages of
files, which the system takes back when it needs them."""

import subprocess
import sys
import threading
import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")


class Bottleneck(nn.Module):
    def __init__(self, i, w, stride):
        super().__init__()
        o = 4 * w
        self.body = nn.Sequential(
            nn.Conv2d(i, w, 1, bias=False),
            nn.BatchNorm2d(w),
            nn.ReLU(True),
            nn.Conv2d(w, w, 3, stride, 1, bias=False),
            nn.BatchNorm2d(w),
            nn.ReLU(True),
            nn.Conv2d(w, o, 1, bias=False),
            nn.BatchNorm2d(o),
        )
        self.down = (
            nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
            if stride != 1 or i != o
            else nn.Identity()
        )

    def forward(self, x):
        return torch.relu(self.body(x) + self.down(x))


def resnet50():
    layers, i = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for w, n, s in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(n):
            layers.append(Bottleneck(i, w, s if k == 0 else 1))
            i = 4 * w
    return (
        nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)),
        torch.randn(4, 3, 64, 64),
        torch.randint(0, 1000, (4,)),
    )


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.place = nn.Embedding(30522, 768, padding_idx=0), nn.Embedding(512, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.1, "gelu", batch_first=True)
        self.norm, self.drop, self.body = (
            nn.LayerNorm(768),
            nn.Dropout(0.1),
            nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
        )
        self.head = nn.Linear(768, 2)

    def forward(self, ids):
        x = self.word(ids) + self.place(torch.arange(ids.shape[1]))
        return self.head(self.body(self.drop(self.norm(x)))[:, 0])


def bert_base():
    return Bert(), torch.randint(1, 30000, (4, 32)), torch.randint(0, 2, (4,))


def resident(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(key + ":"))


class Measured:
    """Calls f: result, seconds, processor seconds, and the largest growth of resident memory in MiB, all of it and that
    of files."""

    def __init__(self, f):
        from onnxtrain.converters.spill import trim_memory

        trim_memory()
        self._before, self._running, self.peak = (resident("VmRSS"), resident("RssFile")), True, (0.0, 0.0)
        watch = threading.Thread(target=self._watch)
        watch.start()
        wall, processor = time.time(), time.process_time()
        try:
            self.result = f()
        finally:
            self.seconds, self.processor = time.time() - wall, time.process_time() - processor
            self._running = False
            watch.join()

    def _watch(self):
        while self._running:
            grown = tuple(resident(k) - b for k, b in zip(("VmRSS", "RssFile"), self._before))
            self.peak = max(self.peak, grown)
            time.sleep(0.005)

    def memory(self, size):
        peak, mapped = self.peak
        return (
            f"peak +{peak:.0f} MiB ({mapped:.0f} mapped) = {peak / size:.1f} x parameters "
            f"= {peak / 3 / size:.2f} x training model"
        )


def timed(f, spent):
    def call(*args):
        wall, processor = time.time(), time.process_time()
        try:
            return f(*args)
        finally:
            spent.append((time.time() - wall, time.process_time() - processor))

    return call


def warm_up(ot):
    m = nn.Linear(3, 2)
    ot.to_torch(ot.from_torch(m, torch.randn(4, 3), torch.randn(4, 2), nn.MSELoss(), torch.optim.AdamW(m.parameters())))


def measure(name):
    import onnxtrain as ot
    from onnxtrain.torch.shared import versions

    torch.manual_seed(0)
    warm_up(ot)
    module, x, y = globals()[name]()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    loss = nn.CrossEntropyLoss()
    for _ in range(2):
        optimizer.zero_grad()
        loss(module(x), y).backward()
        optimizer.step()
    optimizer.zero_grad()
    spent = []
    versions.export = timed(versions.export, spent)
    size = sum(p.numel() * p.element_size() for p in module.parameters()) / 2**20
    alone = Measured(lambda: torch.export.export(module, (x,)) and None)
    m = Measured(lambda: ot.from_torch(module, x, y, loss, optimizer))
    wall, processor = (sum(s) for s in zip(*spent))
    print(
        f"{name}: parameters {size:.0f} MiB, training model {3 * size:.0f} MiB; "
        f"torch.export by itself {alone.seconds:.1f} s, peak +{alone.peak[0]:.0f} MiB\n"
        f"  from_torch {m.seconds:.1f} s, torch.export {wall:.1f} s, "
        f"beyond export {m.seconds - wall:.1f} s ({m.processor - processor:.1f} s); {m.memory(size)}",
        flush=True,
    )
    model = m.result
    del m
    m = Measured(lambda: ot.to_torch(model))
    print(f"  to_torch {m.seconds:.1f} s ({m.processor:.1f} s); {m.memory(size)}; {type(m.result.optimizer).__name__}, "
          f"{sum(p.numel() for p in m.result.module.parameters())} parameters", flush=True)
    del m
    m = Measured(lambda: ot.torch_state_dict(model))
    print(f"  torch_state_dict {m.seconds:.1f} s ({m.processor:.1f} s); {m.memory(size)}", flush=True)
    module.load_state_dict(m.result, strict=True)


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        measure(sys.argv[2])
    else:
        for n in sys.argv[1:] or ["resnet50", "bert_base"]:
            subprocess.run([sys.executable, __file__, "--one", n], check=True)
