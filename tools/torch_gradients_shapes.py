"""Indexing, movement, products, transforms and resampling."""

import numpy as np
import torch
import torch.nn.functional as F


def indexing(b):
    x = b.normal(4, 5)
    i = np.array([[0, -1], [2, 2]])
    b.add("Gather", [x, i], lambda v, k: v[k % 4], {"axis": 0})
    e = b.rng.integers(0, 4, (3, 5))
    b.add("GatherElements", [x, e], lambda v, k: torch.gather(v, 0, k), {"axis": 0})
    b.add("GatherND", [x, np.array([[0, 1], [3, 4], [0, 1]])], lambda v, k: v[k[:, 0], k[:, 1]])
    unique = np.stack([b.rng.permutation(4) for _ in range(5)], 1)[:3]
    updates = b.normal(3, 5)
    b.add("ScatterElements", [x, unique, updates], lambda v, k, u: v.scatter(0, k, u), {"axis": 0})
    for reduction, name in {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}.items():
        b.add(
            "ScatterElements",
            [x, e, updates],
            lambda v, k, u, r=name: v.scatter_reduce(0, k, u, r, include_self=True),
            {"axis": 0, "reduction": reduction},
            name=f"ScatterElements {reduction}",
        )
    rows = np.array([[1], [3]])
    b.add("ScatterND", [x, rows, b.normal(2, 5)], lambda v, k, u: v.index_put((k[:, 0],), u))
    twice = np.array([[1], [1], [3]])
    b.add("ScatterND", [x, twice, b.normal(3, 5)], lambda v, k, u: v.index_put((k[:, 0],), u, accumulate=True),
          {"reduction": "add"}, name="ScatterND add")
    b.add("Compress", [x, np.array([True, False, True, True])], lambda v, c: v[c], {"axis": 0})
    b.add("Slice", [x, np.array([3, 0]), np.array([0, 5]), np.array([0, 1]), np.array([-1, 2])],
          lambda v, *_: v[1:4].flip(0)[:, ::2])


def movement(b):
    x = b.normal(2, 3, 4)
    b.add("Transpose", [x], lambda v: v.permute(2, 0, 1), {"perm": [2, 0, 1]})
    b.add("Reshape", [x, np.array([4, 6])], lambda v, _: v.reshape(4, 6))
    b.add("Expand", [b.normal(3, 1), np.array([2, 3, 4])], lambda v, _: v.expand(2, 3, 4))
    b.add("Tile", [x, np.array([1, 2, 2])], lambda v, _: v.repeat(1, 2, 2))
    b.add("Concat", [x, b.normal(2, 1, 4)], lambda u, v: torch.cat([u, v], 1), {"axis": 1})
    b.add("Split", [x, np.array([1, 3])], lambda v, _: torch.split(v, [1, 3], 2), {"axis": 2}, outputs=2)
    b.add("Trilu", [x, np.array(1)], lambda v, _: torch.triu(v, 1), {"upper": 1})
    b.add("Trilu", [x], torch.tril, {"upper": 0}, name="Trilu lower")
    pads = np.array([0, 1, 0, 2])
    b.add("Pad", [b.normal(2, 4), pads,
                  np.array(1.5)], lambda v, _, c: torch.cat([c.expand(2, 1), v, c.expand(2, 2)], 1),
          {"mode": "constant"}, name="Pad value")
    for mode, name in {"reflect": "reflect", "edge": "replicate", "wrap": "circular"}.items():
        b.add("Pad", [b.normal(1, 2, 5), np.array([0, 0, 2, 0, 0, 1])], lambda v, _, m=name: F.pad(v, (2, 1), m),
              {"mode": mode}, name=f"Pad {mode}")
    b.add("DepthToSpace", [b.normal(1, 8, 2, 3)], lambda v: F.pixel_shuffle(v, 2), {"blocksize": 2, "mode": "CRD"})
    b.add("Flatten", [x], lambda v: v.reshape(2, 12))
    b.add("Unsqueeze", [x, np.array([1])], lambda v, _: v.unsqueeze(1))
    b.add("Squeeze", [b.normal(2, 1, 3), np.array([1])], lambda v, _: v.squeeze(1))


def products(b):
    b.add("MatMul", [b.normal(2, 1, 3, 4), b.normal(3, 4, 2)], torch.matmul)
    b.add("MatMul", [b.normal(4), b.normal(3, 4, 2)], torch.matmul, name="MatMul vector")
    b.add("Gemm", [b.normal(4, 3), b.normal(5, 4), b.normal(5)], lambda x, w, c: 0.5 * x.T @ w.T + 2 * c,
          {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1})
    for equation, shapes in {"bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "ii->i": [(4, 4)], "ij,ij->": [(3, 4), (3, 4)],
                             "bii->b": [(2, 3, 3)], "i,j->ij": [(3,), (4,)],
                             "...ij,jk->...ik": [(2, 3, 4), (4, 2)]}.items():
        b.add("Einsum", [b.normal(*s) for s in shapes], lambda *v, e=equation: torch.einsum(e, *v),
              {"equation": equation}, name=f"Einsum {equation}")
    b.add("Det", [b.normal(2, 3, 3)], torch.linalg.det)


def transforms(b):
    x = b.normal(2, 6, 1)
    length, axis = np.array(6), np.array(1)

    def pair(z):
        return torch.view_as_real(z)

    b.add("DFT", [x, length, axis], lambda v, *_: pair(torch.fft.fft(v[..., 0], dim=1)))
    b.add("DFT", [x, length, axis], lambda v, *_: pair(torch.fft.rfft(v[..., 0], dim=1)), {"onesided": 1},
          name="DFT onesided")
    z = b.normal(2, 6, 2)
    b.add("DFT", [z, length, axis], lambda v, *_: pair(torch.fft.ifft(torch.view_as_complex(v), dim=1)), {"inverse": 1},
          name="DFT inverse")
    signal, window = b.normal(2, 12, 1), b.positive(4)
    b.add("STFT", [signal, np.array(2), window, np.array(4)],
          lambda v, _s, w, _l: pair(torch.stft(v[..., 0], 4, 2, 4, w, center=False, onesided=True,
                                               return_complex=True)).transpose(1, 2),
          {"onesided": 1})
    b.add("Col2Im", [b.normal(1, 8, 4), np.array([3, 3]), np.array([2, 2])], lambda v, *_: F.fold(v, (3, 3), (2, 2)))


def sampling(b):
    for mode, name in {"nearest": "nearest", "linear": "bilinear", "cubic": "bicubic"}.items():
        for padding in ("zeros", "border", "reflection"):
            for align in (0, 1):
                b.add("GridSample", [b.normal(1, 2, 3, 4), b.rng.uniform(-1.4, 1.4, (1, 2, 3, 2))],
                      lambda x, g, m=name, p=padding, a=align: F.grid_sample(x, g, m, p, bool(a)),
                      {"mode": mode, "padding_mode": padding, "align_corners": align},
                      name=f"GridSample {mode} {padding} {align}")
    b.add("GridSample", [b.normal(1, 2, 2, 3, 2), b.rng.uniform(-1.2, 1.2, (1, 2, 1, 2, 3))],
          lambda x, g: F.grid_sample(x, g, "bilinear", "zeros", False), {"mode": "linear"}, name="GridSample 3d")
    for align in (0, 1):
        b.add("AffineGrid", [b.normal(2, 2, 3), np.array([2, 1, 3, 4])],
              lambda t, s, a=align: F.affine_grid(t, s.tolist(), bool(a)), {"align_corners": align},
              name=f"AffineGrid {align}")
    image = b.normal(1, 2, 4, 5)
    for mode, name, how, align in [("nearest", "nearest", "asymmetric", None),
                                   ("linear", "bilinear", "half_pixel", False),
                                   ("linear", "bilinear", "align_corners", True),
                                   ("cubic", "bicubic", "half_pixel", False),
                                   ("cubic", "bicubic", "align_corners", True)]:
        for sizes in ([1, 2, 7, 3], [1, 2, 8, 10]):
            attrs = {"mode": mode, "coordinate_transformation_mode": how, "cubic_coeff_a": -0.75,
                     "nearest_mode": "floor"}
            b.add("Resize", [image, None, None, np.array(sizes)],
                  lambda x, *_, s=sizes, m=name, a=align: F.interpolate(x, s[2:], mode=m, align_corners=a), attrs,
                  name=f"Resize {mode} {how}")
    for mode, name in (("linear", "bilinear"), ("cubic", "bicubic")):
        b.add("Resize", [image, None, None, np.array([1, 2, 2, 3])],
              lambda x, *_, m=name: F.interpolate(x, (2, 3), mode=m, align_corners=False, antialias=True),
              {"mode": mode, "coordinate_transformation_mode": "half_pixel", "antialias": 1, "exclude_outside": 1,
               "cubic_coeff_a": -0.5},
              name=f"Resize {mode} antialias")


def add_cases(b):
    indexing(b)
    movement(b)
    products(b)
    transforms(b)
    sampling(b)
