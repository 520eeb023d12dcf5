"""Verdicts: the readings of each part are fetched and held against its relation, and the parts decide together."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from lnmeasure.claims.ledger import Claim, Part
from lnmeasure.claims.relations import PROFILES, TAKES, Finding, Seed, hold

REPRODUCED, CONTRADICTED, OUTSIDE = "reproduced", "contradicted", "outside its assumptions"
TRAINING, UNTESTED = "about training", "untested"
VERDICTS = (CONTRADICTED, OUTSIDE, REPRODUCED, TRAINING, UNTESTED)

MORE_SEEDS = "The interval reaches across the border of what the claim allows; more seeds would tell."
"""Why an untested claim is so where its readings are there. The word is the same: so far nothing is decided."""

Ask = Callable[[str], pd.DataFrame]
"""Answers one SELECT over the store's views."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the readings say of one part, or of a part at one depth. Without a finding, lack says what is missing."""

    part: Part
    name: str
    finding: Finding | None
    lack: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether it holds; None where readings are lacking or the interval reaches across the border."""
        return self.finding.holds if self.finding else None

    @property
    def expected(self) -> str:
        """What was predicted."""
        return self.part.expected

    def row(self, claim_id: str) -> list[object]:
        """A row of the table evidence."""
        return [claim_id, self.name, self.part.setup, self.expected, *_numbers(self.finding), self.holds]

    def words(self) -> str:
        """Name, measured value, and what was expected, in a few words."""
        found = self.finding.found
        return f"{self.name}: {found.estimate:.4g} ({found.low:.4g} to {found.high:.4g}), expected: {self.expected}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One claim and what the readings say of it."""

    claim: Claim
    verdict: str
    why: str
    evidence: tuple[Evidence, ...]

    def row(self) -> list[object]:
        """A row of the table verdict: the numbers are those of the evidence that decides."""
        claim, leading = self.claim, leading_of(self.claim, self.evidence)
        source = ": ".join(filter(None, (claim.source, claim.where)))
        numbers = _numbers(leading.finding if leading else None)
        expected = leading.expected if leading else claim.predicts or self.evidence[0].expected
        return [claim.id, source, claim.statement, expected, *numbers, self.verdict, self.why, evidence_sql(claim)]


def judge(claims: list[Claim], ask: Ask) -> list[Verdict]:
    """The verdict on each claim, from what a store answers."""
    return [_verdict(claim, tuple(e for part in claim.parts for e in _examine(part, ask))) for claim in claims]


def evidence_sql(claim: Claim) -> str | None:
    """The queries that fetch a claim's readings, one per part."""
    texts = [f"-- {part.name}, {part.setup}\n{part.sql}" for part in claim.parts if part.sql]
    return ";\n".join(texts) or None


def leading_of(claim: Claim, evidence: tuple[Evidence, ...]) -> Evidence | None:
    """The evidence that decides: of its own setting that which fails, else what fails, else what has readings.

    Of several depths that say the same, the one at which the claim shows best.
    """
    there = [e for e in evidence if e.finding and e.part.role != "context"]
    best = at_depth(claim.link.get("depth", 0))
    rank = {True: 1, None: 1, False: 0}
    return min(there, key=lambda e: (rank[e.holds], e.part.role != "own", not e.name.endswith(best)), default=None)


def at_depth(depth: int) -> str:
    """How the name of evidence at one depth ends."""
    return f", L = {depth}"


def _examine(part: Part, ask: Ask) -> list[Evidence]:
    """A part's evidence: one, or one per depth."""
    if part.pending:
        return [Evidence(part=part, name=part.name, finding=None, lack=part.pending)]
    try:
        frame = ask(part.sql)
    except ValueError as error:
        raise ValueError(f"{part.at}: the readings of {part.name!r} cannot be fetched: {error}") from error
    if not part.each_depth:
        return [_examine_at(part, part.name, frame, 1)]
    named = {depth: f"{part.name}{at_depth(depth)}" for depth in part.depths}
    times = len(named)
    return [_examine_at(part, name, frame[frame["depth"] == depth], times) for depth, name in named.items()]


def _examine_at(part: Part, name: str, frame: pd.DataFrame, times: int) -> Evidence:
    seeds, lack = _seeds(part, frame)
    if lack:
        return Evidence(part=part, name=name, finding=None, lack=lack)
    return Evidence(part=part, name=name, finding=hold(seeds, part.relation, times))


def _seeds(part: Part, frame: pd.DataFrame) -> tuple[list[Seed], str]:
    """Each complete seed's readings, in order, and what they lack to be judged."""
    if frame.empty:
        return [], "it is not measured"
    depths = frame["depth"] if "depth" in frame else [0] * len(frame)
    order = {name: place for place, name in enumerate(part.order)}
    rows = sorted(
        zip(frame["seed"], depths, frame["x"], frame["value"], strict=True), key=lambda r: (r[1], order.get(r[2], r[2]))
    )
    seeds: dict[int, Seed] = {}
    for seed, depth, x, value in rows:
        seeds.setdefault(seed, {})[(depth, x)] = float(value)
    return _complete(part, list(seeds.values()))


def _complete(part: Part, seeds: list[Seed]) -> tuple[list[Seed], str]:
    wanted = {key for seed in seeds for key in seed}
    relation = part.relation
    free = relation.take == "rank_correlation"  # there a position is a reading too
    whole = [seed for seed in seeds if free or len(seed) == len(wanted)]
    there = {depth for depth, _ in wanted}
    if not part.each_depth and there != {0} and (lacking := sorted(set(part.depths) - there)):
        return [], f"depths {', '.join(map(str, lacking))} are not measured"
    if len(whole) < 2:
        return [], "fewer than two seeds have all of it"
    if len(whole[0]) < 2 and (relation.take != "each" or relation.name in PROFILES):
        return [], "there is one reading per seed only"
    values = [value for seed in whole for value in seed.values()]
    logs = relation.logs or relation.take in TAKES or relation.name in PROFILES
    if any(value != value or (logs and not free and value <= 0) for value in values):
        return [], "some readings overflowed or vanished"
    return whole, ""


def _verdict(claim: Claim, evidence: tuple[Evidence, ...]) -> Verdict:
    verdict = _word(evidence)
    return Verdict(claim=claim, verdict=verdict, why=_why(claim, verdict, evidence), evidence=evidence)


def _word(evidence: tuple[Evidence, ...]) -> str:
    own, elsewhere = ([e for e in evidence if e.part.role == role] for role in ("own", "elsewhere"))
    answer, there = _together(own), _together(elsewhere)
    if answer is False:
        return OUTSIDE if elsewhere and there is True else CONTRADICTED
    if answer is True:
        return OUTSIDE if there is False else REPRODUCED
    lacking = [e for e in own if e.finding is None]
    return TRAINING if lacking and all(e.part.needs == "training" for e in lacking) else UNTESTED


def _together(evidence: list[Evidence]) -> bool | None:
    answers = {e.holds for e in evidence}
    return False if False in answers else None if None in answers or not answers else True


def _why(claim: Claim, verdict: str, evidence: tuple[Evidence, ...]) -> str:
    """What decided, in figures of the readings, and the reason where it is known."""
    leading = leading_of(claim, evidence)
    telling = [e for e in evidence if e.part.role != "context"]
    lacking = list(dict.fromkeys(f"{e.part.name} ({e.part.setup}): {e.lack}" for e in telling if e.lack))
    if verdict == REPRODUCED:
        return f"{_sentence(leading)} {claim.because}".strip()
    fails = f"{_sentence(leading)} {leading.part.because}".strip() if leading and leading.holds is False else ""
    if verdict in (CONTRADICTED, OUTSIDE):
        return fails
    if lacking:
        said = f"Not decided: {'; '.join(lacking[:3])}{' and more' if len(lacking) > 3 else ''}."
    else:
        across = next(e for e in telling if e.holds is None)
        return f"Measured, and not decided. {_sentence(across)} {MORE_SEEDS} {fails}".strip()
    return f"{said} {fails or (_sentence(leading) if leading else '')}".strip()


def _sentence(evidence: Evidence) -> str:
    return f"In {evidence.part.setup}, {evidence.words()}."


def _numbers(finding: Finding | None) -> list[object]:
    if finding is None:
        return [None, None, None, None]
    found = finding.found
    return [found.estimate, found.low, found.high, found.n_seeds]
