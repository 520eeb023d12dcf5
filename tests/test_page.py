"""The page's script, run without a browser: what it says for good and bad stores and addresses."""

import shutil
import subprocess
import sys

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from lnmeasure.dashboard import prose
from lnmeasure.pages import verdicts
from lnmeasure.store.reader import SHIPPED, Store
from tests.conftest import ROOT

MAIN = ROOT / "lnmeasure" / "pages" / "main.py"


def page(**address: str) -> AppTest:
    """Home at an address, after its first run."""
    app = AppTest.from_file(str(MAIN), default_timeout=60)
    app.query_params.update(address)
    return app.run()


def text(app: AppTest) -> str:
    """Everything the page says in words."""
    return "\n".join(element.value for kind in (app.markdown, app.caption, app.error, app.warning) for element in kind)


@pytest.fixture(autouse=True)
def shipped_path(monkeypatch):
    monkeypatch.delenv("LNMEASURE_STORE", raising=False)


def test_home_shows_all_nine_items_with_numbers_of_the_store(shipped):
    app = page()
    assert not app.exception
    assert not app.error
    headings = [element.value for element in (*app.title, *app.subheader)]
    for words in ("How big is the gradient", "Forward", "Backward", "against depth", "part ways", "GPT-2", "numbers"):
        assert any(words in heading for heading in headings), f"no heading with {words!r}"
    assert app.code[0].value == "x <- N(x + F(x))"
    readouts = shipped.ask("readouts", setup="page", init="xavier_uniform", depth=24)
    assert prose.finding(readouts, 24) in text(app)
    assert len(app.get("vega_lite_chart")) == 4 + verdicts.MOST
    assert "10 seeds" in text(app)


@pytest.mark.parametrize("depth", [1, 8, 64])
@pytest.mark.parametrize("init", ["xavier_uniform", "xavier_residual", "gpt2"])
def test_depth_and_init_come_from_the_address_and_move_everything(depth, init, shipped):
    app = page(depth=str(depth), init=init)
    assert not app.exception
    assert not app.warning
    assert app.select_slider[0].value == depth
    readouts = shipped.ask("readouts", setup="page", init=init, depth=depth)
    assert prose.finding(readouts, depth) in text(app)


def test_moving_the_depth_moves_prose_and_address(shipped):
    app = page()
    app.select_slider(key="depth").set_value(48).run()
    assert not app.exception
    readouts = shipped.ask("readouts", setup="page", init="xavier_uniform", depth=48)
    assert prose.finding(readouts, 48) in text(app)
    assert app.query_params["depth"] in ("48", ["48"])


@pytest.mark.parametrize("depth", ["5", "0", "-8", "abc", "1e1", "", "\uff18"])
def test_an_unknown_depth_is_said_and_the_default_shown(depth):
    app = page(depth=depth)
    assert not app.exception
    (warning,) = app.warning
    assert f"depth={depth}" in warning.value
    assert "1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64" in warning.value
    assert app.select_slider[0].value == 24


def test_an_unknown_init_is_said_and_the_default_shown():
    app = page(init="<script>")
    assert not app.exception
    (warning,) = app.warning
    assert "xavier_uniform, xavier_residual, gpt2" in warning.value
    assert app.selectbox[0].value == "xavier_uniform"


def test_the_address_cannot_put_links_or_pages_of_text_on_the_page():
    app = page(init="` [click](https://evil.example) ![i](https://evil.example/x.png) `" + "x" * 3000)
    (warning,) = app.warning
    assert "](" not in warning.value
    assert "`" not in warning.value.strip("`").split("` in the address")[0]
    assert len(warning.value) < 400


def missing(path):
    return "There is no store at"


def garbage(path):
    path.write_bytes(b"nonsense")
    return "damaged or foreign"


def foreign(path):
    duckdb.connect(path).execute("CREATE TABLE theirs (x INTEGER)").close()
    return "not an lnmeasure store"


def empty_file(path):
    path.touch()
    return "LNMEASURE_STORE"


def directory(path):
    path.mkdir()
    return "not a file"


def without_a_view(path):
    shutil.copyfile(SHIPPED, path)
    duckdb.connect(path).execute("DROP VIEW comparison").close()
    return "lacks comparison"


def without_meta_row(path):
    shutil.copyfile(SHIPPED, path)
    duckdb.connect(path).execute("DELETE FROM meta").close()
    return "schema version unknown"


def cut_in_half(path):
    content = SHIPPED.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return "LNMEASURE_STORE"


@pytest.mark.parametrize(
    "make", [missing, garbage, foreign, empty_file, directory, cut_in_half, without_a_view, without_meta_row]
)
def test_a_store_that_cannot_be_shown_is_one_sentence_with_the_way_out(make, store_at):
    words = make(store_at)
    app = page()
    assert not app.exception
    (error,) = app.error
    assert words in error.value
    assert "make refresh" in error.value


def test_a_store_without_the_pages_setup_says_how_to_measure_it(store_at):
    from tests.cells import invented
    from tests.small import small_grid
    from tests.test_store import publish

    publish(store_at, [invented(small_grid()[0], 1.0)])
    app = page()
    assert not app.exception
    assert "make refresh" in app.error[0].value


def partial_store(path, depths: dict[str, int], change: str = "") -> None:
    """A store of setup page with one init: each placement at one depth, changed by some SQL."""
    from jobs.grids import PAGE
    from lnmeasure.records import Setting
    from lnmeasure.store.building import Building
    from tests.cells import instant

    building = Building(path)
    building.register("placement", [(name, "x <- ...", "nobody", None) for name in depths])
    building.register("init", [("xavier_uniform", "W ~ ...", "nobody", None)])
    for placement, depth in depths.items():
        building.add(instant(Setting(setup=PAGE, placement=placement, init="xavier_uniform", depth=depth, seed=0)))
    if change:
        building._connection.execute(change)
    building.publish("0", None)


@pytest.mark.parametrize(
    "change",
    [
        "",
        "UPDATE cell SET sigma = NULL, top_grad_w2 = NULL, status = 'overflow'",
        "UPDATE block_reading SET grad_w2 = 0, stream_rms = 0",
        "UPDATE block_reading SET grad_w2 = NULL, stream_rms = NULL",
    ],
)
def test_readings_that_overflowed_or_vanished_leave_the_page_standing(change, store_at):
    partial_store(store_at, {"post": 12, "pre": 12}, change)
    app = page()
    assert not app.exception
    assert not app.error
    assert len(app.get("vega_lite_chart")) == 3


def test_placements_without_a_common_depth_are_said_to_lack_readings(store_at):
    partial_store(store_at, {"post": 8, "pre": 12})
    app = page()
    assert not app.exception
    assert "make refresh" in app.error[0].value


def test_a_store_replaced_by_one_with_fewer_cells_is_shown_as_it_is(store_at):
    shutil.copyfile(SHIPPED, store_at)
    app = page(depth="48")
    store_at.unlink()
    shutil.copyfile(SHIPPED, store_at)
    for table in ("cell", "block_reading"):
        duckdb.connect(store_at).execute(f"DELETE FROM {table} WHERE depth = 48 OR init = 'gpt2'").close()
    app.run()
    assert not app.exception
    assert app.select_slider[0].value in (32, 64, 24)
    assert "gpt2" not in app.selectbox[0].options


def test_the_gpt2_question_is_answered_by_the_readings(shipped):
    app = page(depth="64")
    app.radio(key="gpt2_answer").set_value("grows").run()
    assert not app.exception
    rows = shipped.ask("residual_scaling", setup="page", depth=64)
    assert prose.residual_answer(rows, 64) in text(app)
    right = prose.stream_answer(prose.by_name(rows, "init")["xavier_residual"]) == "grows"
    assert ("✓ The readings agree" if right else "✕ The readings disagree") in text(app)


def loads_torch(*modules: str) -> bool:
    """Whether importing some modules in a fresh process loads torch, or what else only measuring installs."""
    lines = [f"import {module}" for module in modules]
    code = "; ".join(["import sys", *lines, "sys.exit(bool({'torch', 'scipy', 'tqdm'} & set(sys.modules)))"])
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 1


def test_page_store_dashboard_and_planning_leave_torch_unloaded():
    pages = ["lnmeasure.pages.source", "lnmeasure.pages.address", "lnmeasure.pages.numbers"]
    assert not loads_torch(*pages, "lnmeasure.dashboard.charts", "lnmeasure.dashboard.readouts", "app")
    assert not loads_torch("lnmeasure.store.building", "jobs.grids", "jobs.refresh", "jobs.status", "jobs.dictionary")


def test_drawing_the_whole_page_leaves_torch_unloaded():
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; "
        f"app = AppTest.from_file({str(MAIN)!r}, default_timeout=60).run(); "
        "assert len(app.get('vega_lite_chart')) > 4, app; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_check_for_torch_can_fail():
    assert loads_torch("lnmeasure.core.measure")


def test_every_chart_plots_finite_numbers_for_every_init_at_shallow_and_deep(shipped):
    from lnmeasure.dashboard import charts

    for init in ("xavier_uniform", "xavier_residual", "gpt2"):
        for depth in (1, 8, 64):
            at = {"setup": "page", "init": init, "depth": depth}
            drawn = [
                charts.forward_chart(shipped.ask("forward", **at)),
                charts.backward_chart(shipped.ask("backward", **at)),
                charts.depth_chart(shipped.ask("depth_curve", setup="page", init=init), depth),
                charts.forward_by_init_chart(shipped.ask("forward_by_init", setup="page", depth=depth)),
            ]
            for chart in drawn:
                rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows if "mean" in row]
                assert rows
                for row in rows:
                    assert 0 < row["low"] <= row["mean"] <= row["high"]


def test_numbers_carry_as_many_digits_as_their_interval_deserves():
    assert prose.with_interval(1.14893, 1.1433, 1.15456) == "1.149 ± 0.006"
    assert prose.with_interval(8.597, 8.45, 8.744) == "8.60 ± 0.15"
    assert prose.with_interval(123.4, 93.4, 153.4) == "123 ± 30"
    assert prose.with_interval(-0.5701, -0.5801, -0.5601) == "-0.570 ± 0.010"
    assert prose.with_interval(1.5, float("nan"), float("nan")) == "1.50 (one seed, no interval)"
    assert prose.with_interval(2.0, 2.0, 2.0) == "2.00 ± 0"


def test_the_readmes_picture_shows_the_shipped_generation():
    picture = (ROOT / "data" / "top_gradient.svg").read_text(encoding="utf-8")
    from jobs.picture import caption

    for line in caption(Store(SHIPPED)):
        assert line in picture


def test_the_data_dictionary_is_the_stores_own_comments():
    from jobs.dictionary import dictionary

    assert (ROOT / "data" / "README.md").read_text(encoding="utf-8") == dictionary(Store(SHIPPED))


def test_the_theory_page_shows_the_derivation_and_says_where_there_are_no_predictions(published):
    from streamlit.testing.v1 import AppTest

    from lnmeasure.store.reader import Store

    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "theory.py"), default_timeout=60).run()
    assert not app.exception
    said = [element.value for element in app.markdown]
    has_predictions = len(Store(published).query("SELECT 1 FROM prediction LIMIT 1")) > 0
    assert any("no predictions yet" in text for text in said) != has_predictions
    assert any("How the prediction is made" in text for text in said)


def test_the_theory_page_says_how_far_the_shipped_predictions_are_off(shipped, monkeypatch):
    from streamlit.testing.v1 import AppTest

    monkeypatch.delenv("LNMEASURE_STORE", raising=False)
    app = AppTest.from_file(str(ROOT / "lnmeasure" / "pages" / "theory.py"), default_timeout=60).run()
    assert not app.exception
    table, outliers, widths, sampled, lemma_2, lemma_3 = [frame.value for frame in app.dataframe]
    assert len(lemma_2) == 12
    said = " ".join(element.value for element in app.markdown)
    assert "12 of 12" in said
    assert "by 0.50000 to 0.50000" in said, "LayerNorm's Jacobian halves where its input doubles"
    assert lemma_3["scale k"].tolist() == [1, 2, 4, 8]
    assert widths["width d"].tolist() == [64, 128, 256, 512, 1024]
    assert sampled["σ, %"].max() < 0.1
    assert outliers["there"].str.contains("block").all()
    assert "tokens become alike" in said
    assert {"post-LN", "pre-LN"} <= set(table["placement"])
    rows = table.set_index("placement")
    assert rows.loc["pre-LN", "σ, worst %"] < 3
    assert rows.loc["pre-LN", "top gradient, median %"] < 5
