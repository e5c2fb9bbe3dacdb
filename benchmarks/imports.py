"""How long `import jointset` takes in a fresh interpreter, and that it leaves torch alone."""

import subprocess
import sys
import time

from table import show


def fresh(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    for code in ("import jointset", "import scipy.signal"):
        fresh(code)  # warm the file cache
    ours = min(fresh("import jointset, sys; assert 'torch' not in sys.modules") for _ in range(5))
    bare = min(fresh("pass") for _ in range(5))
    peer = min(fresh("import scipy.signal, scipy.linalg") for _ in range(5))
    show(
        "import jointset",
        [
            ("import jointset", f"{ours - bare:.2f} s", "limit 0.50 s"),
            ("import scipy.signal, scipy.linalg", f"{peer - bare:.2f} s", f"ratio {(ours - bare) / (peer - bare):.2f}"),
        ],
    )


if __name__ == "__main__":
    main()
