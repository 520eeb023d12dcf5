"""The page in a real Chromium, served as 'make dashboard' serves it, from the shipped store."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pandas as pd
import pytest

from lnmeasure.dashboard import prose
from tests.conftest import CHROMIUM, ROOT

pytestmark = pytest.mark.browser

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of the page with the shipped store."""
    environment = {name: value for name, value in os.environ.items() if name != "LNMEASURE_STORE"}
    with served(environment, tmp_path_factory.mktemp("log") / "streamlit.log") as url:
        yield url


@contextmanager
def served(environment: dict[str, str], log):
    """A served page's address, as long as the block lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += ["--server.address", "127.0.0.1"]
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output) as server,
    ):
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", log)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


def wait_for(url: str, log, seconds: float = 60) -> None:
    """Until the server answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the page was not served: {log.read_text()}")


@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium from the system, never a downloaded one."""
    assert CHROMIUM, "no Chromium: install it with 'apt-get install chromium'"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, address):
    """Open the page and give the tab; at the end no console error may have been seen, but Streamlit's own.

    On a page below the first one Streamlit asks for two addresses of its own in vain.
    """
    troubles, tabs = [], []
    names, pages = ("health", "host-config"), ("placements", "claims")
    own = tuple(f"{address}{page}/_stcore/{name}" for page in pages for name in names)

    def opened(query: str = "", **look: object):
        tab = chromium.new_page(**({"viewport": {"width": 1400, "height": 1000}} | look))
        tabs.append(tab)
        tab.on("console", lambda message: troubles.append(message.text) if is_trouble(message, own) else None)
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("requestfailed", lambda request: troubles.append(request.url))
        tab.goto(address + query)
        settled(tab)
        return tab

    yield opened
    for tab in tabs:
        tab.close()
    assert troubles == []


def is_trouble(message, own: tuple[str, ...]) -> bool:
    """Whether a console message is an error that is ours to explain."""
    return message.type == "error" and not message.location["url"].startswith(own)


def settled(tab) -> None:
    """Until the last line of the page is there and the script no longer runs."""
    tab.get_by_text("Every point is a mean over").wait_for(timeout=60_000)
    charts = 1 if "/claims" in tab.url else 3
    drawn = f"document.querySelectorAll('[data-testid=stVegaLiteChart] svg').length >= {charts}"
    tab.wait_for_function(drawn, timeout=60_000)
    tab.locator("[data-testid=stStatusWidget]").wait_for(state="detached", timeout=60_000)


def expect_depth(tab, depth: int, shipped) -> None:
    """Readouts, address and slider agree on a depth, with the store's numbers."""
    rows = prose.by_name(shipped.ask("readouts", setup="page", init="xavier_uniform", depth=depth), "placement")
    pre = rows["pre"]
    shown = prose.with_interval(pre.sigma_mean, pre.sigma_low, pre.sigma_high)
    tab.locator(".ln-readouts").get_by_text(shown).wait_for(timeout=30_000)
    tab.wait_for_url(f"**/*depth={depth}*", timeout=30_000)
    assert tab.get_by_role("slider").get_attribute("aria-valuetext") == str(depth)


def test_a_visitor_changes_the_depth_clicks_another_and_takes_the_table_away(visit, shipped, tmp_path):
    tab = visit()
    expect_depth(tab, 24, shipped)

    tab.get_by_role("slider").focus()
    tab.keyboard.press("ArrowRight")
    expect_depth(tab, 32, shipped)
    settled(tab)

    # at depth 3 only the whole stack is measured: of the depths one can look into, 4 is the nearest
    for shown, clicked, taken in ((32, 8, 8), (8, 64, 64), (64, 3, 4), (4, 1, 1), (1, 8, 8)):
        click_depth(tab, clicked, shown)
        expect_depth(tab, taken, shipped)
    settled(tab)

    with tab.expect_download() as download:
        tab.locator("[class*=st-key-lnmeasure][class*=depth8]").get_by_role("button", name="Download CSV").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == f"lnmeasure_g{shipped.meta['generation']}_page_xavier_uniform_depth8.csv"
    pd.testing.assert_frame_equal(
        pd.read_csv(file), shipped.ask("profile", setup="page", init="xavier_uniform", depth=8), check_dtype=False
    )


def click_depth(tab, depth: int, shown: int) -> None:
    """Click above a depth's tick in the middle of the depth chart, once the chart of the depth now shown is drawn."""
    chart = tab.locator(f".st-key-depth_chart_xavier_uniform_{shown}")
    chart.locator("svg.marks").wait_for(timeout=30_000)
    chart.scroll_into_view_if_needed()
    place = chart.evaluate(
        """(element, label) => {
            const ticks = [...element.querySelectorAll("svg.marks g.role-axis-label text")];
            const tick = ticks.find(text => text.textContent === label).getBoundingClientRect();
            const frame = element.querySelector("svg.marks").getBoundingClientRect();
            return {x: tick.x + tick.width / 2, y: frame.y + 0.45 * frame.height};
        }""",
        str(depth),
    )
    tab.mouse.click(place["x"], place["y"])


def boxes(locator) -> list[dict]:
    """Where each element of a locator is."""
    return [locator.nth(i).bounding_box() for i in range(locator.count())]


@pytest.mark.parametrize("width", [390, 820, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(width, scheme, visit):
    tab = visit("?depth=48&init=gpt2", viewport={"width": width, "height": 900}, color_scheme=scheme)
    main = tab.locator("[data-testid=stMain]")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    for chart in boxes(tab.locator("[data-testid=stVegaLiteChart]")):
        assert chart["x"] >= 0
        assert chart["x"] + chart["width"] <= width


def test_the_depth_stays_in_view_and_hides_what_scrolls_under_it(visit):
    tab = visit()
    tab.get_by_text("The numbers").scroll_into_view_if_needed()
    slider = tab.get_by_role("slider").bounding_box()
    header = tab.locator("[data-testid=stHeader]").bounding_box()
    assert header["y"] + header["height"] <= slider["y"] < 140, "below the navigation, near the window's top"
    ground = "element => getComputedStyle(element.parentElement).backgroundColor"
    assert tab.locator(".st-key-controls").evaluate(ground) == "rgb(255, 255, 255)"


def test_an_unknown_depth_in_the_address_is_said_in_one_sentence(visit):
    tab = visit("?depth=5")
    tab.get_by_text("depth=5 in the address was dropped").wait_for()


def test_the_page_begins_with_where_its_numbers_come_from_and_says_nothing_by_accident(visit):
    """Streamlit would show any bare text of a script, comments in quotes too."""
    text = visit().locator("[data-testid=stMainBlockContainer]").inner_text().strip()
    assert text.startswith("lnmeasure · generation"), text[:200]
