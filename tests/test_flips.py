"""Every claim of the ledger comes out either way: readings that bear it out, that break it, that are not there."""

import math
from random import Random

import pandas as pd
import pytest

from lnmeasure.claims.judging import CONTRADICTED, MORE_SEEDS, OUTSIDE, REPRODUCED, TRAINING, UNTESTED, judge
from lnmeasure.claims.ledger import Claim, Part, shipped
from lnmeasure.claims.relations import PROFILES, TAKES, Region

SEEDS = range(10)
CLAIMS = {claim.id: claim for claim in shipped()}
DECIDABLE = {name: claim for name, claim in CLAIMS.items() if any(p.sql and p.role == "own" for p in claim.parts)}
every_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
every_decidable_claim = pytest.mark.parametrize("claim", DECIDABLE.values(), ids=DECIDABLE)


def number(region: Region, bears_out: bool, positive: bool) -> float:
    """A number well inside a region, or well outside of it."""
    upper = math.isfinite(region.high)
    if bears_out and upper and math.isfinite(region.low):
        return region.target
    border = region.high if upper else region.low
    upward = upper != bears_out
    if positive:
        return border * 3 if upward else border / 3
    return border + 1 if upward else border - 1


def shape(part: Part, bears_out: bool):
    """The value of a reading by its position, first to last."""
    relation = part.relation
    if relation.name in PROFILES:
        falls = {"increases": -1, "decreases": 1, "ordering": 1, "flat": 0, "within_factor": 0}[relation.name]
        steps = falls if bears_out else -falls or 1
        return lambda x, share: 10.0 ** (-steps * 2 * share)
    positive = relation.logs or (relation.take in TAKES and TAKES[relation.take].logs)
    value = number(relation.region, bears_out, positive)
    return {
        "each": lambda x, share: value,
        "slope": lambda x, share: x**value,
        "factor": lambda x, share: value**x,
        "last_over_first": lambda x, share: value**share,
        "first_over_last": lambda x, share: value**-share,
        "rank_correlation": lambda x, share: math.exp(share if value > 0 else -share),
        "exponential_fit": lambda x, share: math.exp(x) if value > 0 else x**2,
    }[relation.take]


def positions(part: Part) -> list[tuple[int, object, float]]:
    """Depth, position and its share of the way, as a part's query gives them."""
    if part.each_depth or len(part.depths) == 1:
        names = part.order or range(4, 28, 4)
        return [(depth, x, n / (len(names) - 1)) for depth in part.depths for n, x in enumerate(names)]
    return [(depth, depth, n / (len(part.depths) - 1)) for n, depth in enumerate(part.depths)]


def answer(part: Part, bears_out: bool, scatter: float = 1e-4) -> pd.DataFrame:
    """What a store would answer to a part's query."""
    of, draw = shape(part, bears_out), Random(7)
    rows = [
        (seed, depth, x, of(n if isinstance(x, str) else x, share) * (1 + scatter * draw.gauss(0, 1)))
        for seed in SEEDS
        for n, (depth, x, share) in enumerate(positions(part))
    ]
    return pd.DataFrame(rows, columns=["seed", "depth", "x", "value"])


def verdict(claim: Claim, **answers: pd.DataFrame):
    """The verdict where each part's query, found by its name, is answered so."""
    by_sql = {part.sql: answers[part.name] for part in claim.parts if part.sql}
    (found,) = judge([claim], by_sql.__getitem__)
    return found


def answers_of(claim: Claim, bears_out: bool = True) -> dict[str, pd.DataFrame]:
    return {part.name: answer(part, bears_out) for part in claim.parts if part.sql}


def is_whole(claim: Claim) -> bool:
    """Whether each of its own parts has a query: one that nothing measures yet keeps it from being reproduced."""
    return all(part.sql for part in claim.parts if part.role == "own")


@every_decidable_claim
def test_readings_that_bear_a_claim_out_reproduce_it(claim):
    found = verdict(claim, **answers_of(claim)).verdict
    assert found == REPRODUCED if is_whole(claim) else found in (UNTESTED, TRAINING)


@every_decidable_claim
def test_each_part_of_its_own_can_contradict_a_claim(claim):
    for part in claim.parts:
        if part.role == "own" and part.sql:
            found = verdict(claim, **answers_of(claim) | {part.name: answer(part, False)})
            assert found.verdict in (CONTRADICTED, OUTSIDE), part.name
            assert part.name in found.why


@every_decidable_claim
def test_without_the_readings_of_a_part_a_claim_is_not_decided(claim):
    for part in claim.parts:
        if part.role == "own" and part.sql:
            nothing = answer(part, True).iloc[:0]
            found = verdict(claim, **answers_of(claim) | {part.name: nothing})
            assert found.verdict in (UNTESTED, TRAINING), part.name
            assert "not measured" in found.why


@every_claim
def test_other_settings_alone_decide_nothing_and_make_it_outside_its_assumptions(claim):
    elsewhere = [part for part in claim.parts if part.role == "elsewhere" and part.sql]
    broken = {part.name: answer(part, False) for part in elsewhere}
    if elsewhere and is_whole(claim):
        assert verdict(claim, **answers_of(claim) | broken).verdict == OUTSIDE
    nothing = {part.name: answer(part, True).iloc[:0] for part in claim.parts if part.role == "own" and part.sql}
    assert verdict(claim, **answers_of(claim) | broken | nothing).verdict in (UNTESTED, TRAINING)


@every_claim
def test_only_claims_about_training_or_without_a_reading_yet_are_exempt(claim):
    if claim.id not in DECIDABLE:
        own = [part for part in claim.parts if part.role == "own"]
        assert all(part.pending for part in own)
        word = TRAINING if all(part.needs == "training" for part in own) else UNTESTED
        assert verdict(claim, **answers_of(claim)).verdict == word


@every_decidable_claim
def test_readings_that_scatter_too_much_leave_a_claim_untested_and_say_that_there_are_some(claim):
    """A number on the border itself, half of the interval on either side."""
    part = next(part for part in claim.parts if part.role == "own" and part.sql)
    if part.relation.take != "each" or part.relation.name in PROFILES or not is_whole(claim):
        pytest.skip("the border is drawn for single numbers")
    border = part.relation.region.high if math.isfinite(part.relation.region.high) else part.relation.region.low
    rows = answer(part, True)
    rows["value"] = border + (border or 1) * rows.seed.map(lambda seed: 0.2 * (-1) ** seed)
    found = verdict(claim, **answers_of(claim) | {part.name: rows})
    if part.relation.on_means:
        pytest.skip("the source speaks of means, and a mean on the border is inside")
    assert found.verdict in (UNTESTED, TRAINING)
    assert MORE_SEEDS in found.why
