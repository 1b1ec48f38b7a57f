"""The ONNX backend suite: what passes must go on passing, what fails is listed with a reason, and
the list can only shrink. Cases that pass with shapes pass without them too."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")
sys.path.insert(0, str(Path(__file__).parent))
import suite  # noqa: E402

SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("variant", suite.VARIANTS)
def test_suite(variant, shard):
    listed = suite.expected_failures()
    results = suite.run(variant, shard, SHARDS)
    assert len(results) > 2000 // SHARDS
    broken = {n: why for n, why in results.items() if why and n not in listed}
    healed = [n for n, why in results.items() if not why and n in listed]
    text = "\n".join(f"  {n}: {' '.join(why.split())[:400]}" for n, why in broken.items())
    assert not broken, f"{len(broken)} cases fail that are not in {suite.LIST.name}:\n{text}"
    assert not healed, f"these pass now, remove them from {suite.LIST.name}: {', '.join(healed)}"


def test_list_names_real_cases():
    unknown = [n for n in suite.expected_failures() if n not in suite.cases("plain")]
    assert not unknown, f"{suite.LIST.name} names cases that do not exist: {unknown}"


def test_the_suite_is_complete():
    assert len(suite.cases("plain")) == 2033
