"""Page Gradient paths: what it shows of the shipped store, recomputed here from the rows by another way."""

import math
import re

import numpy as np
import pytest

from lnmeasure.store.reader import Store
from tests.conftest import ROOT

PAGE = str(ROOT / "lnmeasure" / "pages" / "paths.py")


@pytest.fixture
def page(shipped, monkeypatch):
    """Opens the page with the shipped store at an address."""
    from streamlit.testing.v1 import AppTest

    monkeypatch.delenv("LNMEASURE_STORE", raising=False)

    def open_at(**parameters):
        app = AppTest.from_file(PAGE, default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_at


def text_of(app):
    return " ".join(element.value for element in [*app.markdown, *app.caption, *app.warning])


def by_hand(store, placement, depth, i, j):
    """Size and share of one pair from the rows of its seeds, one number after the other."""
    rows = store.query(
        "SELECT square, trace, trace_se FROM path_reading WHERE setup = 'paths' AND placement = $placement AND "
        "depth = $depth AND from_block = $i AND to_block = $j",
        {"placement": placement, "depth": depth, "i": i, "j": j},
    )
    sizes, shares = [], []
    for row in rows.itertuples():
        sizes.append(math.sqrt(row.square))
        shares.append(max(row.trace**2 - row.trace_se**2, 0) / row.square)
    return np.mean(sizes), np.std(sizes, ddof=1) / math.sqrt(len(sizes)), np.mean(shares)


@pytest.mark.parametrize("placement", ["post", "pre", "residual"])
def test_sizes_and_shares_are_those_of_the_seeds(shipped, placement):
    rows = shipped.ask("path_sizes", setup="paths", init="xavier_uniform", depth=12, compared=[placement])
    assert len(rows) == 12 * 13 / 2
    for row in rows.itertuples():
        size, error, share = by_hand(shipped, placement, 12, row.from_block, row.to_block)
        assert (row.size, row.size_se, row.identity_share) == pytest.approx((size, error, share), rel=1e-6, abs=1e-12)


def test_the_page_says_that_the_direct_path_is_in_pre_ln_alone_and_that_sizes_stay_near_one(page, shipped):
    app = page(depth="48")
    assert not app.exception
    said = text_of(app)
    for name in ("pre", "post"):
        size, _, share = by_hand(shipped, name, 48, 0, 48)
        assert re.search(rf"{name}-LN's (Jacobian has size )?{size:.2f}\b", said)
        assert (share == pytest.approx(1 / size**2, rel=0.1)) == (name == "pre"), "tr J = T d in pre-LN alone"
        assert 0.3 < size < 10


def test_the_address_is_read_remembered_and_what_is_wrong_in_it_is_said(page):
    app = page(depth="12", measure="identity_share", compare="deepnorm,nonsense", depht="3")
    said = text_of(app)
    assert not app.exception
    assert app.select_slider(key="path_depth").value == 12
    assert app.multiselect(key="path_compare").value == ["deepnorm"]
    assert "compare=nonsense" in said
    assert "depht" in said
    assert app.query_params["measure"] == ["identity_share"] or app.query_params["measure"] == "identity_share"


def test_the_toys_sliders_move_its_sentence(page):
    app = page()
    assert "0.95^48, is 0.085" in text_of(app)
    app.slider(key="toy_factor").set_value(1.0).run()
    said = text_of(app)
    assert "1^48, is 1.000" in said
    assert not app.exception


def test_no_placement_chosen_is_a_page_too(page):
    app = page()
    app.multiselect(key="path_compare").set_value([]).run()
    assert not app.exception
    assert any("Choose a placement" in element.value for element in app.info)


def test_a_store_without_paths_says_how_to_have_them(published, monkeypatch):
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(PAGE, default_timeout=60).run()
    assert not app.exception
    has_paths = len(Store(published).query("SELECT 1 FROM path_reading LIMIT 1")) > 0
    assert any("no Jacobians" in element.value for element in app.error) != has_paths
