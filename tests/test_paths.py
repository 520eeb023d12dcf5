"""Jacobians from block to block: exact ones for small stacks, and an interval that covers them at its rate."""

import math
from dataclasses import replace
from datetime import datetime

import pytest
import torch
from scipy.stats import t as student_t

from jobs import refresh, verify
from jobs.grids import Plan
from jobs.pool import Work
from jobs.worker import measure_cell
from lnmeasure.core import paths
from lnmeasure.core.draws import normal, raw_draw
from lnmeasure.core.initialise import draw_block
from lnmeasure.core.measure import measure
from lnmeasure.core.paths import measure_paths
from lnmeasure.core.placements import PLACEMENTS, Place
from lnmeasure.core.stack import begin, run_block
from lnmeasure.core.watch import Bystander
from lnmeasure.records import PathReading, Setting, Setup
from lnmeasure.store.building import Building, Measured
from lnmeasure.store.errors import StoreError
from lnmeasure.store.lock import locked
from lnmeasure.store.reader import Store

T, D = 3, 4
SIZE = T * D
TINY = Setup(name="tiny", width=D, heads=2, ffn_ratio=2, seq_len=T, batch=SIZE, vocab=7, dtype="float64", eps=0.01)


def cell(placement, depth=3, **changes):
    setup = replace(TINY, **changes)
    return Setting(setup=setup, placement=placement, init="xavier_uniform", depth=depth, seed=1, kind="paths")


def equal_sequences(setting):
    """x_0 whose sequences are all the same, so that one Jacobian is every sequence's."""
    setup = setting.setup
    one = normal(raw_draw(3, "start", 0, (1, setup.seq_len, setup.width)), 1.0)
    return one.repeat(setup.batch, 1, 1)


def exact_jacobian(setting, start, from_block, to_block):
    """d x_j / d x_i of the first sequence by torch.func.jacrev; constants of a placement stay."""
    x, memory, memories = begin(start[:1], setting), {}, []
    for block in range(1, setting.depth + 1):
        memories.append(dict(memory))
        if block == from_block + 1:
            below = x.clone()
        x = _block(x, setting, block, memory)

    def above(y):
        for block in range(from_block + 1, to_block + 1):
            y = _block(y, setting, block, dict(memories[block - 1]))
        return y

    size = below.numel()
    return torch.func.jacrev(above)(below).reshape(size, size)


def _block(x, setting, block, memory):
    place = Place(block=block, stack_depth=setting.depth, memory=memory)
    return run_block(x, draw_block(setting, block, setting.depth), setting, place, Bystander())


@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("placement", list(PLACEMENTS))
def test_with_every_basis_vector_as_a_probe_size_and_trace_are_the_exact_jacobians(placement, norm, monkeypatch):
    """sqrt(T d) e_n, one for each of T d sequences that are equal: then the means over probes are exact."""
    size = SIZE * (2 if PLACEMENTS[placement].dual else 1)
    setting = cell(placement, norm=norm, batch=size)
    basis = math.sqrt(size) * torch.eye(size, dtype=torch.float64)
    shaped = basis.reshape(size, -1, T, D).movedim(1, 0) if PLACEMENTS[placement].dual else basis.reshape(size, T, D)
    monkeypatch.setattr(paths, "_probe", lambda *_: shaped)
    start = equal_sequences(setting)
    found = {(one.from_block, one.to_block): one for one in measure_paths(setting, start)}
    assert found.keys() == {(i, j) for j in range(1, 4) for i in range(j)}
    for i, j in ((0, 3), (1, 2), (0, 1)):
        exact = exact_jacobian(setting, start, i, j)
        assert found[i, j].square == pytest.approx(exact.square().sum().item() / size, rel=1e-10)
        assert found[i, j].trace == pytest.approx(exact.trace().item() / size, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_the_interval_covers_the_exact_value_at_its_rate_over_200_repetitions(placement, monkeypatch):
    """95 % of 200 have a standard deviation of 1.5 %. Squares of few elements are skewed: 96 of them suffice."""
    setting, covered = cell(placement, depth=2, batch=16, width=32), {"square": 0, "trace": 0}
    start = equal_sequences(setting)
    jacobian = exact_jacobian(setting, start, 0, 2)
    exact = {"square": jacobian.square().sum().item() / len(jacobian), "trace": jacobian.trace().item() / len(jacobian)}
    quantile = student_t.ppf(0.975, 15)
    for repetition in range(200):
        monkeypatch.setattr(
            paths, "_probe", lambda s, j, shape, n=repetition: normal(raw_draw(n, "again", j, tuple(shape)), 1.0)
        )
        (whole,) = [one for one in measure_paths(setting, start) if (one.from_block, one.to_block) == (0, 2)]
        for name in covered:
            error = getattr(whole, f"{name}_se")
            covered[name] += abs(getattr(whole, name) - exact[name]) <= quantile * error
    assert all(0.905 * 200 <= count <= 0.995 * 200 for count in covered.values()), covered


def test_a_stack_that_adds_nothing_is_the_identity():
    for one in measure(cell("rezero")):
        assert one.square == pytest.approx(one.trace, rel=1e-12)
        assert one.square == pytest.approx(1, abs=6 * one.square_se)


def test_paths_need_two_blocks_in_order_and_no_encoder():
    with pytest.raises(ValueError, match="from block 2 to block 2: it must lead upwards"):
        PathReading(from_block=2, to_block=2, n_probes=1, square=1, square_se=None, trace=1, trace_se=None)
    with pytest.raises(ValueError, match="encoder is 'stack': paths are measured of stacks without"):
        measure(cell("post", encoder="stack"))
    with pytest.raises(ValueError, match="kind is 'path'"):
        replace(cell("post"), kind="path")


def test_the_kind_is_part_of_the_key():
    assert cell("post").key != replace(cell("post"), kind="readings").key


def test_paths_near_the_end_of_floats_range_are_published_and_those_beyond_it_are_null(tmp_path):
    path, setting = tmp_path / "lnmeasure.duckdb", cell("none", depth=1)
    numbers = {"square": 3e38, "square_se": 3e38, "trace": 3e38, "trace_se": 1e39}
    reading = PathReading(from_block=0, to_block=1, n_probes=2, **numbers)
    with locked(path):
        building = Building(path)
        building.add(Measured(setting=setting, readings=[reading], measured_at=datetime(2026, 1, 1), wall_s=1.0))
        building.publish("0", None)
    (row,) = Store(path).query("SELECT square, square_se, trace, trace_se FROM path_reading").itertuples(index=False)
    assert row[:3] == pytest.approx((3e38, 3e38, 3e38))
    assert math.isnan(row.trace_se)


def test_a_refresh_keeps_paths_as_cells_that_resume_are_counted_and_verified(tmp_path, capsys, monkeypatch):
    path = tmp_path / "lnmeasure.duckdb"
    settings = [replace(cell("pre", depth=depth, batch=4), seed=seed) for depth in (1, 3) for seed in range(3)]
    plan = Plan(grids={"paths": [(setting, None) for setting in settings]})
    options = refresh.Options(work=Work(cell=measure_cell), predicts=True)
    assert refresh.refresh(path, Plan(grids={"paths": plan.grids["paths"][:2]}), options) == 0
    assert refresh.refresh(path, plan, options) == 0
    store = Store(path)
    assert store.measured_keys() == {setting.key for setting in settings}
    assert store.query("SELECT sum(ok) AS ok, sum(planned) AS n FROM coverage").loc[0].tolist() == [6, 6]
    assert store.query("SELECT * FROM by_cell").empty, "a cell of paths is none of readings"
    assert store.query("SELECT * FROM prediction").empty
    rows = store.query("SELECT * FROM path_jacobian").set_index(["depth", "from_block", "to_block"])
    assert len(rows) == 1 + 6
    assert (rows.n_seeds == 3).all()
    assert rows.identity_share.between(0, 1).all()
    seeds = [measure(setting) for setting in settings[3:]]
    sizes = [math.sqrt(one.square) for seed in seeds for one in seed if (one.from_block, one.to_block) == (0, 3)]
    assert rows.loc[(3, 0, 3), "size"] == pytest.approx(sum(sizes) / 3, rel=1e-6)
    monkeypatch.setenv("LNMEASURE_STORE", str(path))
    assert verify.main(["--sample", "6"]) == 0, capsys.readouterr()
    with locked(path):
        building = Building(path)
        building._connection.execute("DELETE FROM path_reading WHERE depth = 3 AND seed = 2 AND to_block = 3")
        with pytest.raises(StoreError, match="cells lack paths"):
            building.publish("0", None)
        building.discard()
