"""The two screenshots of the README: the live page of a simulated city during an incident, and the page of the demo.

python benchmarks/pictures.py [live] [report]     # needs Chromium
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import uvicorn
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browser import browser
from jointset.datasets.city import DAY, Fault, Incident, simulate_city, with_trouble
from jointset.live.app import make_app
from jointset.live.opening import open_network
from jointset.live.replaying import Target, replay, rows_of
from jointset.methods import predictor_for
from jointset.report.model_page import write_course_page
from jointset.report.story import tell_story

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
TRAIN, CALIBRATION = 7 * DAY, 3 * DAY  # rows
SHOWN = DAY + 165  # rows after them
WIDE, TALL = 1600, 900


def live(folder):
    """The live page five rows into an incident, on a dark wall."""
    city = simulate_city(TRAIN + CALIBRATION + SHOWN)
    trouble = [Incident(SHOWN - 5, 30, "ring-8")], [Fault(SHOWN - 130, 200, "west-5", "silent")]
    shown = with_trouble(city[TRAIN + CALIBRATION :], *trouble)
    predictor_for("quick").fit(city[:TRAIN]).calibrate(city[TRAIN : TRAIN + CALIBRATION]).save(folder / "model")
    network = open_network("city", folder / "model", folder / "store")
    server = uvicorn.Server(uvicorn.Config(make_app({network.name: network}), port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    replay(Target(f"{address}/{network.name}"), rows_of(shown), [0.0] * len(shown))
    with browser(folder) as window:
        dark(window, "dark")
        window.open(f"{address}/", WIDE, TALL)
        window.settled("/inside, last/.test(document.querySelector('.trust')?.textContent)", 60)
        window.run(
            "[...document.querySelectorAll('.ranges button')].find((one) => one.textContent === '1 day').click()"
        )
        time.sleep(4.0)
        shoot(window, "live.png", 782)
    server.should_exit = True
    network.close()


def report(folder):
    """The page of the demonstration at the moment of its incident, on white."""
    write_course_page(folder / "page.html", "A simulated city", tell_story(0).course)
    with browser(folder) as window:
        dark(window, "light")
        window.open(folder / "page.html", WIDE, TALL)
        window.settled("document.querySelectorAll('.incident').length", 60)
        window.run("[...document.querySelectorAll('.incident')].at(-1).click()")
        time.sleep(4.0)
        shoot(window, "report.png", 1290)


def dark(window, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    window.send("goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})


def shoot(window, name, tall):
    """A picture of the top of the page in few colours."""
    window.screenshot(PICTURES / name)  # the first one of a busy machine may lack letters
    time.sleep(2.0)
    window.screenshot(PICTURES / name)
    image = Image.open(PICTURES / name).convert("RGB")
    image = image.crop((0, 0, image.width, min(tall, image.height)))
    image.quantize(200, dither=Image.Dither.NONE).save(PICTURES / name, optimize=True)
    print(f"{PICTURES / name}: {image.width} x {image.height}, {(PICTURES / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for kind in sys.argv[1:] or ("live", "report"):
        with tempfile.TemporaryDirectory() as place:
            {"live": live, "report": report}[kind](Path(place))
