"""A folder of made-up results for tests of the pages and tables that read one."""

import json

import numpy as np

from jointset.bench.results import COLUMNS, write_rows, write_run, write_trace

METHODS = ("static", "factor+aci", "kalman", "gnf-node+aci", "ewma", "copula")
ATTACK = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>'
FILE_CELL = f"file:/data/{ATTACK.replace('/', '∕')}.csv"


def row(cell, method, seed, task, **values):
    """One finished row; `values` replace what is made up."""
    numbers = dict.fromkeys(COLUMNS, 0.0) | {"joint": 0.9, "marginal": 0.98, "width": 2.0, "width_full": 3.9}
    numbers |= {
        "log_volume": 0.5,
        "log_mean_volume": 0.55,
        "winkler": 6.0,
        "worst_window": 0.8,
        "fit_seconds": 1.5,
        "peak_mb": 210.0,
    }
    words = {"cell": cell, "protocol": "text", "backbone": "gpvar", "method": method, "status": "ok", "error": ""}
    words |= {"version": "0.0", "commit": "abc1234", "started": "2026-01-02T03:04:05Z", "recipe": "", "device": "cpu"}
    counts = {"seed": seed, "n": 8, "n_calibration": 900, "n_test": 4200, "limit_steps": 0, "data": "", "task": task}
    words |= {"pilot": "", "note": ""}
    return numbers | words | counts | {"alpha": 0.1} | values


def trace(steps, sensors, seed=0, adaptive=False, times=True):
    """A course over time with a bad stretch in the middle."""
    rng = np.random.default_rng(seed)
    score = rng.chisquare(8, steps).astype(np.float32)
    score[steps // 2 : steps // 2 + steps // 20] *= 3.0
    radius = np.full(steps, 13.4, dtype=np.float32)
    if adaptive:
        radius *= (1.0 + 0.2 * np.sin(np.arange(steps) / 150)).astype(np.float32)
    found = {"score": score, "radius": radius, "inside": score <= radius, "width_full": radius / 4}
    if times:
        found["timestamps"] = 1_330_560_000 + 300 * np.arange(steps)
    n = len(sensors)
    found |= {"outside": np.linspace(0.08, 0.0, n, dtype=np.float32), "sensors": np.array(sensors)}
    return found | {"blame": np.full(n, np.nan) if adaptive else np.linspace(0.3, 0.0, n, dtype=np.float32)}


def write_cell(folder, cell, methods, *, seeds=2, steps=4200, sensors=8, hostile=False, protocol="text", times=True):
    """Rows and traces of one cell, one task a method; sizes and coverage differ by method."""
    names = [f"sensor {i}" for i in range(sensors)]
    if hostile:
        names[0] = ATTACK
    slug = "".join(letter for letter in cell if letter.isalnum())[:30]
    for k, method in enumerate(methods):
        task = f"{slug}-{protocol}-{k}"
        own = "own" if method.startswith(("kalman", "gnf")) else "gpvar"
        values = {"backbone": own, "n": sensors, "n_test": steps, "protocol": protocol}
        values |= {"joint": 0.905 - 0.012 * (k == 2), "width": 2.5 - 0.1 * k, "width_full": 4.8 - 0.2 * k}
        values |= {"log_volume": 0.4 + 0.05 * k, "log_mean_volume": 0.45 + 0.05 * k, "worst_window": 0.81 - 0.02 * k}
        rows = []
        for seed in range(seeds):
            drift = 0.01 * seed
            rows.append(row(cell, method, seed, task, **values | {"width": values["width"] + drift}))
        write_rows(folder, task, rows)
        parts = trace(steps, names, k, adaptive="+" in method, times=times)
        write_trace(folder, task, {method: parts})


def write_folder(folder):
    """A small folder with everything a page must cope with: failures, infinite sets, hostile names, audits."""
    folder.mkdir(exist_ok=True)
    write_cell(folder, "metr-la-20", METHODS)
    write_cell(folder, FILE_CELL, METHODS[:3], seeds=1, steps=300, hostile=True, times=False)
    error = {"status": "error", "error": f"training diverged at step 12 {ATTACK}", "joint": float("nan")}
    error |= {
        name: float("nan")
        for name in ("width", "width_full", "log_volume", "log_mean_volume", "winkler", "worst_window")
    }
    write_rows(folder, "failed", [row("metr-la-20", "hopcpt", seed, "failed", **error) for seed in (0, 1)])
    endless = {"width": float("inf"), "width_full": float("inf"), "log_volume": float("inf")}
    endless |= {"log_mean_volume": float("inf"), "infinite_share": 0.2}
    write_rows(folder, "endless", [row("metr-la-20", "spci", 0, "endless", joint=1.0, **endless)])
    machine = {"cpu": "a processor", "cores": 2, "python": "3.11"}
    command = "jointset bench --cells metr-la-20 --out results"
    write_run(folder, {"command": command, "version": "0.0", "started": "2026-01-02T03:04:05Z", "machine": machine})
    audits = folder / "_audits"
    audits.mkdir(exist_ok=True)
    decay = {"x": list(range(60)), "y": [0.9**k for k in range(60)], "label": "distance of coupled laws"}
    audit = {"cell": "metr-la-20", "filter": "kalman", "rho_dG": {"value": 0.9, "verdict": ATTACK, "curve": decay}}
    (audits / "metr-la-20--kalman.json").write_text(json.dumps(audit | {"tau_int": {"value": 3.5}}))
    (audits / "broken.json").write_text("{")
    return folder
