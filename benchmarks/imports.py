"""How long `import jointset`, its first names and its commands take in a fresh interpreter, beside numpy and scipy.

Processor time (user and system) of the whole process less that of an empty one, medians of 15 that take turns: other
work on the machine disturbs all alike, and the last column, which divides by `import numpy, scipy.linalg`, least.
"""

import resource
import statistics
import subprocess
import sys

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


def processor_seconds(code: str) -> float:
    """Processor time of a fresh interpreter that runs this."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in ("nothing", *CODES)}
    for _ in range(ROUNDS):
        for name in taken:
            taken[name].append(processor_seconds(CODES.get(name, "pass")))
    median = {name: statistics.median(found) - statistics.median(taken["nothing"]) for name, found in taken.items()}
    rows = [
        (name, f"{median[name]:.2f} s", f"{median[name] / median[FLOOR]:.2f} of {FLOOR}{LIMITS.get(name, '')}")
        for name in CODES
    ]
    show("processor time of imports", rows)


if __name__ == "__main__":
    main()
