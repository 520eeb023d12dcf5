"""Placements and inits in a real Chromium, over invented readings of every placement and init."""

import os

import pytest

from tests.catalogue import publish_catalogue
from tests.test_browser import chromium, served, settled, visit  # noqa: F401  fixtures, which take this module's address

pytestmark = pytest.mark.browser

CELL = """
(element, [row, column]) => {
    const texts = [...element.querySelectorAll("svg.marks g.role-axis-label text")];
    const middle = name => {
        const box = texts.find(text => text.textContent.replace(/\\s/g, "") === name).getBoundingClientRect();
        return {x: box.x + box.width / 2, y: box.y + box.height / 2};
    };
    return {x: middle(column).x, y: middle(row).y};
}
"""

CUT = """
() => [...document.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")].flatMap(svg => {
    const frame = svg.getBoundingClientRect(), most = 4;  // a line of text is that much taller than its letters
    return [...svg.querySelectorAll("text")].filter(text => {
        const box = text.getBoundingClientRect();
        return box.width && (box.left < frame.left - most || box.right > frame.right + most
            || box.top < frame.top - most || box.bottom > frame.bottom + most);
    }).map(text => text.textContent);
})
"""

CLOSE = """
() => [...document.querySelectorAll("[data-testid=stVegaLiteChart] svg.marks")].flatMap(svg => {
    const ends = [...svg.querySelectorAll("g.mark-text:not(.role-axis-label):not(.role-axis-title) text")]
        .filter(text => getComputedStyle(text).fontWeight >= 600).map(text => [text, text.getBoundingClientRect().top])
        .sort((one, other) => one[1] - other[1]);
    return ends.slice(1).filter(([_, top], i) => top - ends[i][1] < 13).map(([text]) => text.textContent);
})
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of the page with the invented store."""
    folder = tmp_path_factory.mktemp("catalogue")
    path = publish_catalogue(folder / "lnmeasure.duckdb")
    with served(os.environ | {"LNMEASURE_STORE": str(path)}, folder / "streamlit.log") as url:
        yield url


def click_cell(tab, row: str, column: str, picture: int) -> None:
    """Click where a placement's row and an init's column meet, in the first or second picture of the matrix."""
    chart = tab.locator(f"[class*=st-key-matrix_{picture}_]")
    chart.locator("svg.marks").wait_for(timeout=30_000)
    chart.scroll_into_view_if_needed()
    place = chart.evaluate(CELL, [row, column])
    tab.mouse.click(place["x"], place["y"])


def test_a_click_on_a_cell_shows_its_profile_and_goes_into_the_address(visit):  # noqa: F811
    tab = visit("placements")
    for row, name, column, init, picture in (
        ("Mix-LN", "mix_ln", "xavierresidual", "xavier_residual", 0),
        ("ReZero", "rezero", "dsinit", "ds_init", 1),
        ("DeepNorm", "deepnorm", "theory", "theory", 1),
    ):
        click_cell(tab, row, column, picture)
        tab.wait_for_url(f"**/*placement={name}&init={init}*", timeout=30_000)
        settled(tab)
        chart = tab.locator("[data-testid=stVegaLiteChart]").nth(2)
        chart.locator("svg text", has_text=row).first.wait_for(timeout=30_000)
    tab.get_by_text("ReZero's gradient").wait_for(state="detached", timeout=30_000)


def test_navigation_leads_from_home_and_back(visit):  # noqa: F811
    tab = visit()
    tab.get_by_role("link", name="Placements and inits").click()
    tab.get_by_role("heading", name="One cell").wait_for(timeout=30_000)
    assert "/placements" in tab.url
    settled(tab)
    tab.get_by_role("link", name="Home").click()
    tab.get_by_role("heading", name="How big is the gradient").wait_for(timeout=30_000)
    settled(tab)


@pytest.mark.parametrize("width", [390, 820, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window_and_no_label_is_cut(width, scheme, visit):  # noqa: F811
    tab = visit(
        "placements?compare=reordered_no_qk,layernorm_scaling,rezero,keel&depth=64",
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    main = tab.locator("[data-testid=stMain]")
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    assert tab.evaluate(CUT) == []
    assert tab.evaluate(CLOSE) == []
