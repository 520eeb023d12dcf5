"""Placements and inits: its matrix, sentences, looks and page, over a store with every trouble a reading can have."""

import json
import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from jobs.grids import INITS, PLACEMENTS
from lnmeasure.dashboard import cards, compare, matrix, theme
from lnmeasure.dashboard import prose_placements as words
from lnmeasure.store.reader import Store
from tests.catalogue import OPEN_QUESTION, PLUGIN, publish_catalogue
from tests.conftest import ROOT
from tests.test_page import text

PAGES = ROOT / "lnmeasure" / "pages"
AT = {"setup": "page", "depth": 16}
every_measure = pytest.mark.parametrize("measure", list(matrix.MEASURES.values()), ids=list(matrix.MEASURES))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return publish_catalogue(tmp_path_factory.mktemp("catalogue") / "lnmeasure.duckdb")


@pytest.fixture(scope="module")
def store(path) -> Store:
    return Store(path)


@pytest.fixture
def page(path, monkeypatch):
    """The page, or another one, at an address, after its first run."""
    monkeypatch.setenv("LNMEASURE_STORE", str(path))

    def run(script: str = "placements.py", **address: str) -> AppTest:
        app = AppTest.from_file(str(PAGES / script), default_timeout=60)
        app.query_params.update(address)
        return app.run()

    return run


def html(app: AppTest) -> str:
    """Everything the page says in HTML."""
    return "\n".join(element.proto.body for element in app.get("html"))


def table(store: Store, measure: matrix.Measure, depth: int = 16):
    readings = store.ask("matrix", setup="page", depth=depth)
    return matrix.matrix_of(readings, store.ask("matrix_slopes", setup="page"), measure)


def cell(store: Store, name: str, placement: str, init: str = "gpt2", depth: int = 16):
    found = table(store, matrix.MEASURES[name], depth)
    (row,) = found[(found.placement == placement) & (found.init == init)].itertuples()
    return row


def test_the_page_shows_every_placement_and_init_with_equation_source_and_what_is_unconfirmed(page):
    app = page()
    assert not app.exception
    assert not app.error
    assert not app.warning
    assert len(app.get("vega_lite_chart")) == 2 + 2 + 2 + 4
    said = html(app)
    for name in (*PLACEMENTS, *INITS, PLUGIN):
        assert f"<small>{name}</small>" in said, name
    assert said.count("<strong>unconfirmed:</strong> whether L counts &lt;blocks&gt; or sublayers") == 2
    assert OPEN_QUESTION not in said, "what a plugin writes is escaped"
    assert "exactly 0 at init in 10 of 10 seeds" in said


def test_the_headline_is_the_stores(page, store):
    rows = store.ask("small_embedding", **AT)
    assert words.headline(rows, 16) in text(page(depth="16"))
    (full,) = rows[rows.init == "gpt2"].itertuples()
    ratios = store.query(
        "SELECT ln(pre.top_grad_w2) - ln(post.top_grad_w2) AS r FROM by_cell pre JOIN by_cell post "
        "USING (setup, init, depth, seed) WHERE pre.placement = 'pre' AND post.placement = 'post' "
        "AND setup = 'page' AND init = 'gpt2' AND depth = 16"
    ).r
    assert full.over_post == pytest.approx(math.exp(ratios.mean()), rel=1e-6)
    assert cell(store, "over_post", "pre").value == pytest.approx(full.over_post, rel=1e-12)


def test_bottom_over_top_is_the_geometric_mean_of_each_seeds_ratio(store):
    found = cell(store, "bottom_over_top", "sandwich")
    blocks = store.query(
        "SELECT seed, block, grad_w2 FROM by_block WHERE setup = 'page' AND init = 'gpt2' AND depth = 16 "
        "AND placement = 'sandwich' AND block = 1 ORDER BY seed"
    ).grad_w2.to_numpy(float)
    top = store.query(
        "SELECT top_grad_w2 AS g FROM by_cell WHERE setup = 'page' AND init = 'gpt2' AND depth = 16 "
        "AND placement = 'sandwich' AND \"full\" ORDER BY seed"
    ).g.to_numpy(float)
    logs = np.log(blocks) - np.log(top)
    half = 2.262157 * logs.std(ddof=1) / math.sqrt(len(logs))
    assert found.value == pytest.approx(math.exp(logs.mean()), rel=1e-6)
    assert found.low == pytest.approx(math.exp(logs.mean() - half), rel=1e-5)
    assert found.high == pytest.approx(math.exp(logs.mean() + half), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "placement", "init", "depth", "expected"),
    [
        ("over_post", "post", "gpt2", 16, "1.0"),
        ("over_post", "rezero", "gpt2", 16, "zero"),
        ("over_post", "keel", "gpt2", 64, "beyond"),
        ("over_post", "completep", "theory", 16, "no data"),
        ("over_post", PLUGIN, "gpt2", 16, "no data"),
        ("sigma", "none", "gpt2", 16, "no σ"),
        ("sigma", "rezero", "gpt2", 16, "no σ"),
        ("sigma", "keel", "gpt2", 64, "beyond"),
        ("slope", "keel", "gpt2", 16, "no fit"),
        ("slope", "rezero", "gpt2", 16, "zero"),
        ("bottom_over_top", "rezero", "gpt2", 16, "zero"),
    ],
)
def test_a_cell_without_a_number_has_the_word_for_why(name, placement, init, depth, expected, store):
    assert cell(store, name, placement, init, depth).text == expected


def test_numbers_in_cells_are_short_and_zero_has_no_sign():
    ratio, slope = matrix.MEASURES["over_post"], matrix.MEASURES["slope"]
    shown = {8.614: "8.6", 0.0203: "0.020", 0.0034: "3e−3", 12.4: "12", 123.4: "123", 999.7: "1e3", 5.2e14: "5e14"}
    assert {value: matrix.short(value, ratio) for value in shown} == shown
    assert [matrix.short(value, slope) for value in (-0.503, -0.001, 0.001)] == ["−0.50", "0.00", "0.00"]


def test_every_word_is_explained_below_the_matrix(store):
    for name, measure in matrix.MEASURES.items():
        found = table(store, measure, 64)
        caption = words.matrix_caption(found, measure, 64)
        for missing in set(found.text[~found.measured]):
            assert f"*{missing}*: {matrix.WORDS[missing]}" in caption, name


@every_measure
def test_the_colour_is_neutral_at_the_neutral_value_and_symmetric_about_it(measure):
    assert measure.shade(measure.neutral) == 0
    above = measure.full if measure.ratio else measure.neutral + measure.full
    below = 1 / measure.full if measure.ratio else measure.neutral - measure.full
    assert measure.shade(above) == pytest.approx(1)
    assert measure.shade(below) == pytest.approx(-1)
    assert measure.neutral == (1 if measure.ratio else 0)
    assert measure.shade(1e30) == 1


@every_measure
@pytest.mark.parametrize("depth", [2, 16, 64])
def test_every_matrix_is_drawn_about_its_middle_without_nan(measure, depth, store):
    found = table(store, measure, depth)
    for inits in matrix.groups(found):
        spec = matrix.matrix_chart(found, inits, "pre", "gpt2").to_dict()
        drawn = json.dumps(spec, allow_nan=False)
        assert '"domain": [-1, 0, 1]' in drawn
        rows = [row for rows in spec["datasets"].values() for row in rows]
        assert len(rows) == len(inits) * (len(PLACEMENTS) + 1)
        assert all(len(row["text"]) <= 7 for row in rows)


def luminance(colour: tuple[float, ...]) -> float:
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("end", [matrix.BELOW, matrix.ABOVE])
def test_numbers_can_be_read_on_every_colour_of_the_scale(end):
    for part in np.linspace(0, 1, 21):
        mixed = tuple(part * a + (1 - part) * b for a, b in zip(rgb(end), rgb(matrix.MIDDLE), strict=True))
        assert contrast(mixed, rgb(matrix.INK)) >= 4.5


@pytest.mark.parametrize(("looks", "names"), [(theme.PLACEMENTS, PLACEMENTS), (theme.INITS, INITS)])
def test_everything_measured_has_a_look_of_its_own_that_reads_on_light_and_dark(looks, names):
    assert set(names) == set(looks)
    assert len({(look.colour, look.marker, look.dash) for look in looks.values()}) == len(names)
    assert len({look.label for look in looks.values()}) == len(names)
    for look in looks.values():
        for ground in ("#FFFFFF", "#0E1117"):
            assert contrast(rgb(look.colour), rgb(ground)) >= 3, look


def test_a_plugins_placement_gets_a_look_from_its_name_and_comes_last():
    looks = theme.PLACEMENTS.of([PLUGIN, "pre", "post"])
    assert list(looks) == ["post", "pre", PLUGIN]
    assert looks[PLUGIN] == theme.PLACEMENTS[PLUGIN]
    assert looks[PLUGIN].label == "my own norm"
    assert looks[PLUGIN].colour not in (theme.VERMILION, theme.BLUE)
    assert PLUGIN not in theme.PLACEMENTS


@pytest.mark.parametrize("profile", [compare.STREAM, compare.GRADIENT])
@pytest.mark.parametrize("depth", [1, 16, 64])
def test_profiles_draw_positive_numbers_only_and_say_what_they_leave_out(profile, depth, store):
    names = ["post", "rezero", "keel", "none", PLUGIN]
    rows = store.ask("placement_profiles", setup="page", init="gpt2", depth=depth, compared=names)
    drawn = json.dumps(compare.together(rows, profile).to_dict(), allow_nan=False)
    for rows_drawn in json.loads(drawn)["datasets"].values():
        assert all(0 < row["low"] <= row["mean"] <= row["high"] for row in rows_drawn)
    assert (', predicted"' in drawn) == (depth > 1), "a dotted line of what is predicted, where it is more than a point"
    said = words.left_out(rows, names, "gpt2", depth)
    assert f"ReZero's gradient is exactly 0 in {depth} of " in said
    assert ("Keel's stream is beyond the range" in said) == (depth == 64)
    assert "my own norm is not measured" in said
    assert "post-LN" not in said


def test_an_interval_that_reaches_below_zero_or_is_not_known_still_has_a_place_on_a_logarithmic_axis():
    quantity = {"grad_w2_mean": [1.0, 2.0], "grad_w2_low": [-0.5, np.nan], "grad_w2_high": [2.5, np.nan]}
    quantity["grad_w2_predicted"] = [1.5, 0.0]
    rows = pd.DataFrame({"placement": "pre", "block": [1, 2], "n_seeds": [2, 1], **quantity})
    drawn = compare.drawable(rows, compare.GRADIENT)
    assert drawn.low.tolist() == [1.0, 2.0]
    assert drawn.high.tolist() == [2.5, 2.0]
    assert drawn.predicted.isna().tolist() == [False, True], "a prediction of 0 has no place there"
    json.dumps(compare.together(rows, compare.GRADIENT).to_dict(), allow_nan=False)


def test_a_profile_of_zeros_alone_is_no_chart(store):
    rows = store.ask("placement_profiles", setup="page", init="gpt2", depth=16, compared=["rezero", "post"])
    assert compare.together(rows[rows.placement == "rezero"], compare.GRADIENT) is None
    assert compare.small_multiple(rows, compare.GRADIENT, "rezero") is None
    assert compare.small_multiple(rows, compare.GRADIENT, "post") is not None


@given(st.lists(st.floats(0, compare.PLOT_HEIGHT), min_size=1, max_size=6).map(sorted))
def test_labels_never_lie_on_one_another_nor_below_the_chart(wanted):
    places = compare.spread(wanted)
    assert all(b - a >= 15 - 1e-9 for a, b in pairwise(places))
    assert 0 <= places[0] <= places[-1] <= compare.PLOT_HEIGHT
    if all(b - a >= 15 for a, b in pairwise(wanted)):
        assert places == wanted, "labels that do not touch stay where they are"


def test_a_sentence_says_ratio_slope_with_its_range_bottom_and_sigma(store):
    readings, slopes = store.ask("matrix", **AT), store.ask("matrix_slopes", setup="page")
    said = words.placement_sentences(readings, slopes, "gpt2", 16)
    assert said["rezero"] == "With 16 blocks the top gradient is exactly 0 at init in 10 of 10 seeds."
    assert said[PLUGIN] == "Not measured with this init at 16 blocks yet."
    row = cell(store, "slope", "sandwich")
    assert f"{words.with_interval(row.value, row.low, row.high)}".replace("-", "−") in said["sandwich"]
    assert "over L = 2 to 64" in said["sandwich"]
    assert "over L = 2 to 32" in said["keel"], "where the longer range has no fit, the shorter one is said"
    assert "last norm divides" not in said["none"]


def test_the_address_holds_everything_and_a_choice_moves_it(page):
    app = page(placement="sandwich", init="he", depth="8", measure="slope", compare="keel,rezero")
    assert not app.exception
    assert not app.warning
    assert app.selectbox(key="matrix_placement").value == "sandwich"
    assert app.multiselect(key="matrix_compare").value == ["keel", "rezero"]
    assert "ReZero's gradient is exactly 0 in 8 of 8 blocks" in text(app)
    app.selectbox(key="matrix_init").set_value("lecun")
    app.multiselect(key="matrix_compare").set_value(["b2t", "keel"])
    app.select_slider(key="matrix_depth").set_value(64).run()
    assert not app.exception
    held = {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}
    assert held == {
        "placement": "sandwich", "init": "lecun", "depth": "64", "measure": "slope", "compare": "b2t,keel",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"placement": "batchnorm"}, "placement=batchnorm"),
        ({"init": "<b>"}, "init=?b?"),
        ({"depth": "5"}, "depth=5"),
        ({"measure": "pi"}, "measure=pi"),
        ({"compare": "pre,what,keel"}, "compare=what"),
        ({"compare": "pre,keel,b2t,none,admin,post"}, "compare=admin?post"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_is_dropped_from_the_address_is_said_in_one_sentence(address, said, page):
    app = page(**address)
    assert not app.exception
    (warning,) = app.warning
    assert f"`{said}` in the address was dropped" in warning.value
    assert "colour" not in app.query_params


def test_nothing_to_compare_is_no_error(page):
    app = page(compare="")
    assert not app.exception
    assert not app.warning
    assert len(app.get("vega_lite_chart")) == 4


def test_home_shows_post_and_pre_only_and_offers_every_init(page):
    app = page("home.py", init="he", depth="16")
    assert not app.exception
    assert not app.error
    assert len(app.get("vega_lite_chart")) == 4
    assert len(app.selectbox[0].options) == len(INITS)
    for shown in app.dataframe:
        assert set(shown.value.placement) == {"post", "pre"}


def test_the_page_stands_on_a_store_that_has_post_and_pre_only(store_at):
    from tests.test_page import partial_store

    partial_store(store_at, {"post": 12, "pre": 12})
    app = AppTest.from_file(str(PAGES / "placements.py"), default_timeout=60).run()
    assert not app.exception
    assert not app.error
    assert "not measured at 12 blocks" in text(app)


def test_a_store_without_the_pages_setup_says_how_to_measure_it(published):
    app = AppTest.from_file(str(PAGES / "placements.py"), default_timeout=60).run()
    assert not app.exception
    assert "make refresh" in app.error[0].value


def test_cards_escape_what_they_are_given(store):
    entries = store.ask("placement_entries")
    drawn = cards.cards_html(entries[entries.kind == "placement"], theme.PLACEMENTS, {PLUGIN: "<script>"})
    assert "<script>" not in drawn
    assert "x &lt;- N(x) &lt; x" in drawn
