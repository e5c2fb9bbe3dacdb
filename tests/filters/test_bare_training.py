"""Training and filtering need numpy, scipy and torch (with what torch itself brings), nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

HERE = ["numpy", "numpy.libs", "scipy", "scipy.libs", "torch", "torch.libs", "torchgen", "functorch"]
WITH_TORCH = [
    "filelock",
    "typing_extensions.py",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "fsspec",
    "setuptools",
    "triton",
]
CODE = """
import sys

sys.path[:0] = sys.argv[1:3]
from jointset import GNF, JointPredictor, generate_grssf

train, _, calibration, test = generate_grssf("A", n=8, length=900).panel.split()
assert len(GNF(steps=2).fit(train, seeds=2)) == 2
filter_ = GNF(node=True, steps=2)
filter_.fit(train, checkpoint=sys.argv[3])
run = JointPredictor(filter_).fit(train).calibrate(calibration).run(test)
assert 0.5 < run.joint <= 1.0
try:
    import pandas
except ImportError:
    print("bare")
"""


def test_training_needs_numpy_scipy_and_torch_alone(tmp_path: Path) -> None:
    installed, bare = Path(torch.__file__).parents[1], tmp_path / "site"
    bare.mkdir()
    for name in (*HERE, *WITH_TORCH):
        if (installed / name).exists():
            (bare / name).symlink_to(installed / name)
    source = Path(__file__).parents[2] / "src"
    command = [sys.executable, "-S", "-c", CODE, str(bare), str(source), str(tmp_path / "run.checkpoint")]
    done = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"})
    assert (done.returncode, done.stdout.strip()) == (0, "bare"), done.stderr
