"""Claims in a real Chromium, over the shipped readings and their verdicts."""

import os
import shutil

import pytest

from jobs.grids import Plan
from jobs.refresh import Options, refresh
from lnmeasure.store.reader import SHIPPED
from tests.test_browser import chromium, served, visit  # noqa: F401  fixtures, which take this module's address
from tests.test_browser_placements import CUT

pytestmark = pytest.mark.browser

OVERLAPPING = """
() => [...document.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")].flatMap(svg => {
    const labels = [...svg.querySelectorAll("g.role-axis-label text")].filter(text => text.getBoundingClientRect().width);
    const boxes = labels.map(text => text.getBoundingClientRect());
    return labels.filter((_, i) => boxes.some((box, j) => j < i && box.left < boxes[i].right - 1
        && boxes[i].left < box.right - 1 && box.top < boxes[i].bottom - 6 && boxes[i].top < box.bottom - 6))
        .map(text => text.textContent);
})
"""
WIDE = """
() => [...document.querySelectorAll(".ln-claim, .ln-claim *")].filter(element =>
    element.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(element => element.textContent)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of the page with the shipped readings, judged."""
    folder = tmp_path_factory.mktemp("judged")
    path = folder / "lnmeasure.duckdb"
    for ending in ("", ".record"):
        shutil.copyfile(f"{SHIPPED}{ending}", f"{path}{ending}")
    assert refresh(path, Plan(grids={}), Options(judges=True)) == 0
    with served(os.environ | {"LNMEASURE_STORE": str(path)}, folder / "streamlit.log") as url:
        yield url


def test_a_reader_answers_and_takes_a_claim_to_home(visit):  # noqa: F811
    tab = visit("claims?claim=X7")
    answer = tab.locator(".st-key-answer_F1")
    answer.get_by_text("holds", exact=True).click()
    tab.get_by_text("The readings disagree with you").wait_for(timeout=30_000)
    link = tab.get_by_role("link", name="See it at 48 blocks")
    tab.goto(link.evaluate("element => element.href"))
    tab.get_by_role("heading", name="How big is the gradient").wait_for(timeout=30_000)
    assert "depth=48" in tab.url
    tab.locator(".ln-claim").first.wait_for(timeout=30_000)
    tab.get_by_role("link", name="All claims").click()
    tab.get_by_role("heading", name="Claims: what papers say").wait_for(timeout=30_000)


@pytest.mark.parametrize("where", ["claims?claim=X7", "?depth=48"])
@pytest.mark.parametrize("width", [390, 820, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window_and_no_label_is_cut_or_covered(where, width, scheme, visit):  # noqa: F811
    tab = visit(where, viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab.locator(".ln-claim").first.wait_for(timeout=30_000)
    main = tab.locator("[data-testid=stMain]")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    assert tab.evaluate(WIDE) == []
    assert tab.evaluate(CUT) == []
    assert tab.evaluate(OVERLAPPING) == []
