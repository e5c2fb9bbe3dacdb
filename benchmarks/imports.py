"""How long `import jointset`, its first names and its commands take in a fresh interpreter, beside numpy and scipy.

Processor time (user and system) of the whole process less that of an empty one, medians of 15 that take turns: other
work on the machine disturbs all alike, and the last column, which divides by `import numpy, scipy.linalg`, least.
Modules are compiled before, as pip leaves them: a first round, not counted, fills a folder of bytecode.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile

from table import show

ROUNDS = 15
FLOOR = "import numpy, scipy.linalg"
COMMAND = "import sys; sys.argv = ['jointset', *{words}]; from jointset.cli import main; main()"
CODES = {
    "import numpy": "import numpy",
    FLOOR: FLOOR,
    "import jointset": "import jointset, sys; assert 'torch' not in sys.modules",
    "from jointset import JointPredictor": "from jointset import JointPredictor",
    'jointset.predictor("kalman")': "import jointset; jointset.predictor('kalman')",
    "jointset --help": COMMAND.format(words=["--help"]),
    "jointset methods": COMMAND.format(words=["methods"]),
}
LIMITS = dict.fromkeys(("import jointset", "from jointset import JointPredictor"), "; limit 0.30 s")


def processor_seconds(code: str, bytecode: str) -> float:
    """Processor time of a fresh interpreter that runs this, with its bytecode in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in ("nothing", *CODES)}
    with tempfile.TemporaryDirectory() as bytecode:
        for round_ in range(ROUNDS + 1):
            for name, found in taken.items():
                seconds = processor_seconds(CODES.get(name, "pass"), bytecode)
                found.extend([seconds] if round_ else [])
    median = {name: statistics.median(found) - statistics.median(taken["nothing"]) for name, found in taken.items()}
    rows = [
        (name, f"{median[name]:.2f} s", f"{median[name] / median[FLOOR]:.2f} of {FLOOR}{LIMITS.get(name, '')}")
        for name in CODES
    ]
    show("processor time of imports", rows)


if __name__ == "__main__":
    main()
