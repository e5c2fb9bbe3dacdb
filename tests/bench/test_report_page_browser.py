"""The report page in headless Chromium: no console errors, sorting, filtering, drill-down, phone width, inert names."""

import json

import pytest
from synthetic_results import write_folder

from browser import browser, needed
from jointset.bench.report import write_report

pytestmark = needed
COLUMN = "return [...document.querySelectorAll('#table tbody tr[data-method]')].map((row) => row.cells[{}].innerText)"


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_report(write_folder(tmp_path_factory.mktemp("results")))


@pytest.fixture
def opened(window, page):
    window.console()  # what an earlier page said
    window.open(page)
    yield window
    assert window.console() == []
    assert window.run("return window.hacked") is None


def methods(window):
    return [text.strip("▸▾ ") for text in window.run(COLUMN.format(0))]


def choose(window, selector, text):
    window.run(
        "const box = document.querySelector(arguments[0]);"
        "box.value = [...box.options].find((one) => one.text === arguments[1]).value;"
        "for (const kind of ['input', 'change']) box.dispatchEvent(new Event(kind, {bubbles: true}));",
        selector,
        text,
    )


def heading(window, title):
    titles = window.run("return [...document.querySelectorAll('#table th')].map((one) => one.innerText)")
    return next(i for i, text in enumerate(titles) if text.startswith(title)) + 1


def test_sorting_by_click_and_by_keyboard(opened):
    place = heading(opened, "width")
    button = f"#table th:nth-child({place}) button"
    state = f"return document.querySelector('#table th:nth-child({place})').getAttribute('aria-sort')"
    assert opened.run(state) == "none"
    opened.click(button)
    assert opened.run(state) == "ascending"
    widths = opened.run(COLUMN.format(place - 1))
    numbers = [float(text.split(" ")[0].replace("∞", "inf")) for text in widths if text != "–"]
    assert numbers == sorted(numbers) and len(numbers) == 10
    assert widths[-1] == "–"  # no result stands last
    opened.keys(button, "\ue007")  # Enter: the other way round, and the heading keeps the focus
    assert opened.run(state) == "descending"
    widths = opened.run(COLUMN.format(place - 1))
    assert widths[0] == "∞" and widths[-1] == "–"
    assert opened.run(f"return document.activeElement === document.querySelector('{button}')")


def test_filters(opened):
    everything = len(methods(opened))
    opened.keys("#filter-method", "ACI")
    assert sorted(set(methods(opened))) == ["factor+aci", "gnf-node+aci"]
    opened.run("document.getElementById('filters').reset()")
    choose(opened, "#filter-cell", "metr-la-20")
    assert set(opened.run(COLUMN.format(1))) == {"metr-la-20"} and "hopcpt" in methods(opened)
    opened.click("#filter-target")
    assert "hopcpt" not in methods(opened) and "kalman" not in methods(opened) and "static" in methods(opened)
    choose(opened, "#filter-backbone", "own")
    assert methods(opened) == ["gnf-node+aci"]
    count = opened.run("return document.getElementById('count').textContent")
    assert count == f"1 of {everything} results shown"
    choose(opened, "#filter-protocol", "text")
    assert methods(opened) == ["gnf-node+aci"]


def test_seeds_unfold_and_errors_are_told(opened):
    assert opened.run("return document.querySelectorAll('tr.seed').length") == 0
    opened.click("tr[data-method='ewma'] .opener")
    assert opened.run("return document.querySelectorAll('tr.seed').length") == 2
    assert opened.run("return document.activeElement.getAttribute('aria-expanded')") == "true"
    message = opened.run("return document.querySelector('tr.message').innerText")
    assert message.startswith("hopcpt failed (seeds 0, 1): training diverged at step 12")


def test_drill_down(opened):
    about = "return document.getElementById('course-about').textContent"
    choose(opened, "#filter-cell", "metr-la-20")
    opened.click("tr[data-method='static'] .goto")
    assert opened.run(about).startswith("static on metr-la-20, seed 0: 4,200 test steps")
    assert opened.run("return scrollY") > 0
    assert opened.run("return document.querySelectorAll('#course-score .misses').length") > 20
    assert "2012-03-" in opened.run("return document.getElementById('course-worst').innerText")
    bars = opened.run("return [...document.querySelectorAll('#course-blame .name')].map((one) => one.textContent)")
    assert bars[0] == "sensor 0"
    assert opened.run("return document.querySelectorAll('#clock-table tbody tr').length") == 24
    choose(opened, "#course-method", "factor+aci")
    assert opened.run(about).startswith("factor+aci on metr-la-20")
    assert "not known" in opened.run("return document.getElementById('course-blame').innerText")
    choose(opened, "#course-other", "kalman")
    assert "dashed: kalman" in opened.run("return document.querySelector('#course-share figcaption').textContent")
    hostile = opened.run("return [...document.querySelectorAll('#course-panel option')].map((one) => one.text)[0]")
    choose(opened, "#course-panel", hostile)
    assert opened.run("return document.getElementById('course-clock').hidden")  # no time stamps
    assert "<img" in opened.run("return document.querySelector('#course-outside .name').textContent")


def test_pointing_at_the_chart_reads_it(opened):
    opened.run(
        "const hit = document.querySelector('#course-score .hit');"
        "const box = hit.getBoundingClientRect();"
        "hit.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 5}));"
    )
    caption = opened.run("return document.querySelector('#course-score figcaption').textContent")
    assert "steps" in caption and "radius" in caption and "missed" in caption


def test_figures_have_every_method_with_finite_sets_and_lead_to_the_course(opened):
    charts = opened.run(
        "return [...document.querySelectorAll('#scatter svg')].map((s) => s.querySelectorAll('.point').length)"
    )
    assert charts == [3, 3, 6, 6]
    titles = opened.run("return [...document.querySelectorAll('#scatter .point title')].map((one) => one.textContent)")
    assert all("log mean volume" in text and "joint" in text for text in titles)
    opened.run(
        "document.querySelectorAll('#scatter .point')[6].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert "on metr-la-20" in opened.run("return document.getElementById('course-about').textContent")
    assert opened.run("return document.querySelectorAll('#audits svg').length") == 1


@pytest.mark.parametrize("width", [390, 768])
def test_readable_on_a_phone(window, page, width):
    window.open(page, width, 800)
    assert window.run("return [document.documentElement.scrollWidth, innerWidth]") == [width, width]
    small = window.run(
        "return [...document.querySelectorAll('main *')].filter((one) => [...one.childNodes].some((part) =>"
        " part.nodeType === 3 && part.textContent.trim())).filter((one) => one.getClientRects().length &&"
        " parseFloat(getComputedStyle(one).fontSize) < 14).map((one) => one.tagName + one.textContent.slice(0, 30))"
    )
    assert small == []
    cut = window.run(  # labels of the charts lie inside them
        "return [...document.querySelectorAll('svg text')].filter((one) => {"
        " const a = one.getBoundingClientRect(), b = one.ownerSVGElement.getBoundingClientRect();"
        " return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;"
        "}).map((one) => one.textContent)"
    )
    assert cut == []
    assert window.console() == []


def test_a_folder_with_nothing_but_audits_is_shown(window, tmp_path):
    audit = {"value": 0.9, "verdict": "forgets", "curve": {"x": [0, 1, 2], "y": [1.0, 0.9, 0.8], "label": "decay"}}
    (tmp_path / "_audits").mkdir()
    (tmp_path / "_audits" / "ett-7--kalman.json").write_text(json.dumps({"cell": "ett-7", "rho_dG": audit}))
    window.console()
    window.open(write_report(tmp_path))
    assert window.run("return document.querySelectorAll('#audits svg').length") == 1
    assert window.run("return document.getElementById('results').checkVisibility()") is False
    assert window.console() == []
