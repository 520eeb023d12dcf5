"""Known answers that need the full grid: the shipped store's means against mathematics."""

import math

import pytest

INITS = ("xavier_uniform", "xavier_residual", "gpt2")


def means(store, columns: str, where: str) -> list:
    """Rows of by_depth in setup page."""
    return list(store.query(f"SELECT {columns} FROM by_depth WHERE setup = 'page' AND {where}").itertuples())


def test_every_mean_is_over_ten_seeds(shipped):
    assert shipped.query("SELECT min(n_seeds) AS a, max(n_seeds) AS b FROM by_depth").loc[0].tolist() == [10, 10]
    assert shipped.query("SELECT min(n_seeds) AS a, max(n_seeds) AS b FROM profile").loc[0].tolist() == [10, 10]


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("init", ["xavier_uniform", "xavier_residual"])
def test_the_loss_is_ln_v_plus_d_over_d_plus_v_at_every_depth(placement, init, shipped):
    """A unit-rms state through a Xavier head has logits of variance 2 d / (d + V); half of it adds to ln V."""
    expected = math.log(1000) + 256 / (256 + 1000)
    for row in means(shipped, "depth, loss_mean AS loss", f"placement = '{placement}' AND init = '{init}'"):
        assert row.loss == pytest.approx(expected, abs=0.02), f"depth {row.depth}"


def test_post_ln_divides_by_the_root_of_one_plus_the_ffns_gain_at_every_depth(shipped):
    """sigma^2 = 1 + 2r/(1+r)^2 = 1.32 for r = 4, within 2 % or 3 standard errors, whichever is larger."""
    expected = math.sqrt(1 + 2 * 4 / 5**2)
    rows = means(shipped, "depth, sigma_mean, sigma_low, sigma_high", "placement = 'post' AND init = 'xavier_uniform'")
    assert len(rows) == 11
    for row in rows:
        standard_error = (row.sigma_high - row.sigma_low) / 2 / 2.2622
        assert abs(row.sigma_mean - expected) < max(0.02 * expected, 3 * standard_error), f"depth {row.depth}"


def test_the_top_gradient_is_a_constant_over_sigma_until_tokens_align(shipped):
    """sqrt(r d/(1+r) 2d/(d+V)/(B T))/sigma: within 3 % at one block, at most 13 % low at 64, for Xavier-uniform."""
    d, vocab, tokens, r = 256, 1000, 32 * 32, 4
    constant = math.sqrt(r * d / (1 + r) * 2 * d / (d + vocab) / tokens)
    assert constant == pytest.approx(0.2855, abs=5e-5)
    for row in means(shipped, "depth, sigma_mean, top_grad_w2_mean AS top", "init = 'xavier_uniform'"):
        low = -0.03 if row.depth == 1 else -0.13 - 0.03
        high = 0.03 if row.depth == 1 else 0.20
        assert low < row.top * row.sigma_mean / constant - 1 < high, f"depth {row.depth}"


@pytest.mark.parametrize(("depth", "sigma", "gradient"), [(1, 1.24, 0.238), (8, 2.74, 0.1125), (64, 8.6, 0.035)])
def test_pre_ln_has_the_sizes_an_independent_script_found(depth, sigma, gradient, shipped):
    """2 %: five seeds of that script against ten of ours."""
    (row,) = means(
        shipped,
        "sigma_mean AS sigma, top_grad_w2_mean AS top",
        f"placement = 'pre' AND init = 'xavier_uniform' AND depth = {depth}",
    )
    assert row.sigma == pytest.approx(sigma, rel=0.02)
    assert row.top == pytest.approx(gradient, rel=0.03)


@pytest.mark.parametrize("init", INITS)
def test_both_placements_of_a_seed_see_the_same_embeddings(init, shipped):
    rows = shipped.query(
        f"SELECT seed, count(DISTINCT embedding_rms) AS n FROM by_cell WHERE init = '{init}' GROUP BY seed"
    )
    assert rows.n.tolist() == [1] * 10


def test_a_shipped_cell_is_measured_again_to_the_same_readings(shipped):
    """1e-4 relative: another processor may order its sums otherwise; on the same machine the bits are equal."""
    from jobs.grids import PAGE
    from lnmeasure.core.measure import measure
    from lnmeasure.records import Setting

    for placement in ("post", "pre"):
        setting = Setting(setup=PAGE, placement=placement, init="gpt2", depth=2, seed=7)
        where = f"placement = '{placement}' AND init = 'gpt2' AND depth = 2 AND seed = 7"
        blocks = shipped.query(f"SELECT * FROM by_block WHERE {where}").set_index("block")
        for reading in measure(setting):
            if reading.block is not None:
                assert blocks.loc[reading.block, reading.quantity] == pytest.approx(reading.value, rel=1e-4)
