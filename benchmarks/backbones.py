"""Mean backbones on real data: squared error in z-scores against persistence, and the time to fit.

Usage: backbones.py [CELL ...], by default metr-la-20. Early stopping looks at the validation block, so the calibration
block, which nothing has seen, is printed beside it. Settings after a colon: `metr-la:stgnn.batch=4,stgnn.steps=700`.
"""

import sys
import time

from table import show  # first: sets the number of threads

import numpy as np

from jointset.backbones import BACKBONES, backbone
from jointset.datasets import cell


def settings(text: str) -> dict[str, dict[str, int]]:
    """Options by backbone of `NAME.OPTION=NUMBER,...`."""
    options: dict[str, dict[str, int]] = {name: {} for name in BACKBONES}
    for part in filter(None, text.split(",")):
        key, number = part.split("=")
        name, option = key.split(".")
        options[name][option] = int(number)
    return options


def errors(means: dict[str, np.ndarray], values: dict[str, np.ndarray]) -> list[float]:
    return [float(np.mean((values[name] - means[name]) ** 2)) for name in values]


def main() -> None:
    import torch

    torch.set_num_threads(1)
    for request in sys.argv[1:] or ["metr-la-20"]:
        name, _, text = request.partition(":")
        chosen, rows = cell(name), []
        before = {"validation": "train", "calibration": "validation"}
        values = {block: chosen.block(block).values for block in before}
        last = {block: chosen.block(earlier).values for block, earlier in before.items()}
        persistence = errors({b: np.vstack([last[b][-1:], values[b][:-1]]) for b in values}, values)
        rows.append(("persistence", "validation {:.4f}  calibration {:.4f}".format(*persistence), ""))
        for kind, options in settings(text).items():
            start = time.perf_counter()
            fitted = backbone(kind, **options).fit(chosen.train, chosen.block("validation"))
            took = time.perf_counter() - start
            found = errors({b: fitted.predict(values[b], last[b][-fitted.lags :]) for b in values}, values)
            ratios = [a / b for a, b in zip(found, persistence, strict=True)]
            rows.append(
                (
                    kind,
                    "validation {:.4f}  calibration {:.4f}".format(*found),
                    "x persistence {:.3f} {:.3f}   fit {:.1f} s".format(*ratios, took),
                )
            )
        show(f"mean squared error of one-step means, {request}", rows, "one seed; persistence is the last reading")


if __name__ == "__main__":
    main()
