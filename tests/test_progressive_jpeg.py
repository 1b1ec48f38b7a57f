"""Progressive JPEG: the same coefficients as a baseline file, the same pixels."""

import base64
import sys

import numpy as np
import onnx
import pytest

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/support")
from cli_models import cli, save  # noqa: E402

BASELINE = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUo
KSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/wAARCAAVABsDASIAAhEB
AxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS
0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKz
tLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgEC
BAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpj
ZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6
/9oADAMBAAIRAxEAPwDQXxcDHtiO3aMA55/OuV8Ra3dXIcQynjkn2/z/AJNanhvwvcSxh5UcnuSe/wCtdFdeEokQtJtC9uMEY78Vx5fHCYarpqe7ja2B
wmAsld2PH7a3vr67XAJDc574/qK7Oy8OXX2SLMj5Iycnp+orpLbT7KzmJ3Jt+9nk8/WurgvrNYUDFgwHOEJH86+zePm4r2cdD4XK86qTc1Rhp6FmyuPJ
tX8pFBVseua5Xxfr1yjERjbwDnPfj/GiivhslpQlWTaPpXRhPB+8rnl934gu5b1hnaOuM9eAf5n9KvHVZyecntksc0UV+vUcPT5UuUwyOjTgpcq/rQ//
2Q==
""")
PROGRESSIVE = base64.b64decode("""
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAYEBQYFBAYGBQYHBwYIChAKCgkJChQODwwQFxQYGBcUFhYaHSUfGhsjHBYWICwgIyYnKSopGR8tMC0oMCUo
KSj/2wBDAQcHBwoIChMKChMoGhYaKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCj/wgARCAAVABsDASIAAhEB
AxEB/8QAGAAAAgMAAAAAAAAAAAAAAAAAAAUDBAb/xAAXAQEBAQEAAAAAAAAAAAAAAAAFAwQG/9oADAMBAAIQAxAAAAGwqtMY7se5ZNmQpFQBp5ecOvn/
AP/EAB0QAQACAgIDAAAAAAAAAAAAAAIBBAADERITFCH/2gAIAQEAAQUC9v5Y3JYS2hXXWtVUwqkYdYEwxwFwbe9YrCl+Wc//xAAbEQABBQEBAAAAAAAA
AAAAAAABAAIDBBESIf/aAAgBAwEBPwGZ8EUCq3XHeAuAYfVRY0bi/8QAHBEAAgICAwAAAAAAAAAAAAAAAQIAAwQREyIx/9oACAECAQE/AccVVtOc66iY
SgvErXXk/8QAFxABAQEBAAAAAAAAAAAAAAAAIQAQAf/aAAgBAQAGPwIjucZnSN//xAAcEAADAQACAwAAAAAAAAAAAAAAARExIUFhcfD/2gAIAQEAAT8h
WXCF4kfya4UCMUViGhU0WW2+inC4Ys+g6dHzT//aAAwDAQACAAMAAAAQBb89/8QAGREAAwEBAQAAAAAAAAAAAAAAAAERIXHw/9oACAEDAQE/EJNKuDFc
eDxlEMPYf//EABgRAQEBAQEAAAAAAAAAAAAAAAEAIREx/9oACAECAQE/EMPsuPCGKXAJ/8QAIhABAAICAQMFAQAAAAAAAAAAAREhAEExYaGxUXGRwfDR
/9oACAEBAAE/EAZNEDN/OClaten785EQpadx9mXuVJZeO5gJ92rvvi+BpUJG6xo9Utv3whQBcNPOVHMHrONgcBmd1/cLphzE80Pl7Yu3LqVTn//Z
""")


def pixels(work, data):
    (work / "image.jpg").write_bytes(data)
    h = onnx.helper
    g = h.make_graph([h.make_node("Cast", ["x"], ["y"], to=1)], "g",
                     [h.make_tensor_value_info("x", onnx.TensorProto.UINT8, ["N", 3, 21, 27])],
                     [h.make_tensor_value_info("y", 1, ["N", 3, 21, 27])])
    save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), work / "m.onnx")
    r = cli("predict", "m.onnx", "--data", "image.jpg", "--scale", "none", "-o", "p.npy", cwd=work)
    assert r.returncode == 0, r.stderr
    return np.load(work / "p.npy")


def test_same_pixels_as_the_baseline_file(tmp_path):
    assert PROGRESSIVE.find(b"\xff\xc2") > 0 and BASELINE.find(b"\xff\xc0") > 0
    want = pixels(tmp_path, BASELINE)
    assert want.std() > 20
    np.testing.assert_array_equal(pixels(tmp_path, PROGRESSIVE), want)


@pytest.mark.parametrize("cut", [30, 200, 500, len(PROGRESSIVE) - 40])
def test_a_file_that_ends_early_is_named(tmp_path, cut):
    (tmp_path / "cut.jpg").write_bytes(PROGRESSIVE[:cut])
    r = cli("new", "cnn", "--data", "cut.jpg", "-o", "m.onnx", cwd=tmp_path)
    assert r.returncode == 4 and "cut.jpg" in r.stderr, r.stderr


def test_bytes_that_are_changed_never_crash(tmp_path):
    r = np.random.default_rng(0)
    for k in range(12):
        data = bytearray(PROGRESSIVE)
        for at in r.integers(20, len(data), 6):
            data[at] = r.integers(0, 256)
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / f"d/{k}.jpg").write_bytes(bytes(data))
    h = cli("new", "cnn", "--data", "d", "--skip-bad", "-o", "m.onnx", cwd=tmp_path)
    assert h.returncode == 4 and "OT2186" in h.stderr or "OT2200" in h.stderr, h.stderr
