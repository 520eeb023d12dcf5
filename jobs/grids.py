"""Grids: which settings the shipped store is made of. A grid is a function that returns Settings, or what it skips."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from lnmeasure.records import DTYPES, Setting, Setup

PAGE = Setup(name="page")
"""The constants of the page 'how big is the gradient?', with embeddings N(0, 1), as the theory assumes."""

PAGE_DEPTHS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)
DEEP_DEPTHS = (128, 256, 512, 1024)
CATALOGUE_DEPTHS = (2, 4, 8, 16, 32, 64)
SEEDS = range(10)
SEEDS_IN_FULL = range(3)
"""Of the ten seeds of a pair of the catalogue these have readings of every block, the others of the whole stack: a file
of less than 25 MB holds no more. The lesser grids have these seeds only."""

PLACEMENTS = [
    *("post", "pre", "none", "sandwich", "reordered", "reordered_no_qk", "deepnorm", "keel", "admin", "normformer"),
    *("layernorm_scaling", "mix_ln", "hybridnorm", "b2t", "residual", "rezero", "layerscale", "depth_mup", "completep"),
]
INITS = [
    *("xavier_uniform", "xavier_normal", "xavier_residual", "gpt2", "normal_002", "he", "lecun", "torch_linear"),
    *("small_wang", "ds_init", "orthogonal", "theory"),
]
"""What core registers, by name: a plan is made without torch. jobs.plugins adds what plugins register."""

BOTH_SCALES = ("xavier_uniform", "gpt2")
"""The init that leaves embeddings to the setup, and the one that draws them as small as everything else."""
EMBEDDINGS = {"004": 0.04, "002": 0.02}
XAVIER = ("xavier_uniform", "xavier_normal")
XIONG_THEORY = Setup(
    name="xiong_theory",
    width=512,
    heads=1,
    ffn_ratio=1,
    attention="uniform",
    output_projection=False,
    input="gaussian",
    seq_len=8,
)
"""Sequences of 8 tokens, 32 of them: the paper states no number; head and targets are those of page."""
XIONG_FIG3 = Setup(name="xiong_fig3", width=512, ffn_ratio=2, seq_len=16, batch=16, encoder="stack")
"""d, FFN and heads of the paper's Figure 3; 16 sentences of 16 tokens, of 1000 words, are what we can afford."""
FIG3_DEPTHS = (6, 8, 10, 12, 14)
COSINES = {"000": 0.0, "050": 0.5, "098": 0.98}
PATHS = Setup(name="paths", batch=8)
"""The constants of page, with as many sequences as probes are wanted."""
PATH_DEPTHS = (6, 12, 24, 48)
WIDTHS = (64, 128, 512, 1024)
BATCHES = (8, 128)
LENGTHS = (8, 128)


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A setting that a grid leaves out on purpose, and why."""

    setting: Setting
    reason: str


@dataclass(frozen=True, kw_only=True)
class WholeOnly:
    """A setting of which the whole-stack readings are enough."""

    setting: Setting


Grid = Callable[[], list[Setting | Skipped | WholeOnly]]


def page() -> list[Setting]:
    """What Home shows: post and pre, three inits, eleven depths, ten seeds."""
    inits = ("xavier_uniform", "xavier_residual", "gpt2")
    return [
        Setting(setup=PAGE, placement=placement, init=init, depth=depth, seed=seed)
        for placement, init, depth, seed in product(("post", "pre"), inits, PAGE_DEPTHS, SEEDS)
    ]


def page_dense() -> list[WholeOnly]:
    """The depth curve at every depth to 64, for inits that do not depend on depth."""
    inits = ("xavier_uniform", "xavier_normal")
    return [
        WholeOnly(setting=Setting(setup=PAGE, placement=placement, init=init, depth=depth, seed=seed))
        for placement, init, seed, depth in product(("post", "pre"), inits, SEEDS, range(1, 65))
    ]


def deep() -> list[Setting]:
    """Stacks of up to a thousand blocks."""
    inits = ("xavier_uniform", "xavier_residual")
    return [
        Setting(setup=PAGE, placement=placement, init=init, depth=depth, seed=seed)
        for placement, init, depth, seed in product(("post", "pre"), inits, DEEP_DEPTHS, range(3))
    ]


def catalogue() -> list[Setting | WholeOnly]:
    """Every placement by every init."""
    return _crossed([PAGE], PLACEMENTS, INITS)


def norms() -> list[Setting | WholeOnly]:
    """Every placement with RMSNorm."""
    return _crossed([replace(PAGE, name="rmsnorm", norm="rmsnorm")], PLACEMENTS, BOTH_SCALES, SEEDS_IN_FULL)


def embeddings() -> list[Setting | WholeOnly]:
    """Every placement with smaller embeddings; those of page are 1."""
    setups = [replace(PAGE, name=f"embedding_{name}", embedding_std=std) for name, std in EMBEDDINGS.items()]
    return _crossed(setups, PLACEMENTS, BOTH_SCALES, SEEDS_IN_FULL)


def zipf() -> list[Setting | WholeOnly]:
    """Every placement with tokens and targets that are as uneven as words."""
    return _crossed([replace(PAGE, name="zipf", data="zipf")], PLACEMENTS, BOTH_SCALES, SEEDS_IN_FULL)


def shape() -> list[Setting | WholeOnly]:
    """Post and pre at other widths, batches and lengths, one constant of page changed at a time; three seeds."""
    setups = [replace(PAGE, name=f"width_{width}", width=width) for width in WIDTHS]
    setups += [replace(PAGE, name=f"batch_{batch}", batch=batch) for batch in BATCHES]
    setups += [replace(PAGE, name=f"length_{length}", seq_len=length) for length in LENGTHS]
    return _crossed(setups, ("post", "pre"), ("xavier_uniform",), seeds=SEEDS_IN_FULL)


def xiong_theory() -> list[Setting]:
    """The setting of Xiong et al. 2020's theory: one head, d x d matrices, attention a plain mean, Gaussian inputs."""
    return [
        Setting(setup=XIONG_THEORY, placement=placement, init=init, depth=depth, seed=seed)
        for placement, init, depth, seed in product(("post", "pre"), XAVIER, (2, 4, 6, 8, 12), SEEDS)
    ]


def xiong_fig3() -> list[Setting]:
    """The encoder-decoders of Xiong et al. 2020's Figure 3, and controls in which the encoder's outputs are set.

    A batch four times as large has the mean gradient of four mini-batches. With Zipf tokens; with three cosines.
    """
    return [
        Setting(setup=setup, placement=placement, init="xavier_uniform", depth=depth, seed=seed)
        for setup, seeds in fig3_setups().items()
        for placement, depth, seed in product(("post", "pre"), FIG3_DEPTHS, seeds)
    ]


def paths() -> list[Setting]:
    """Jacobians from block to block, of every placement; eight probes a seed; ten seeds of shallow post and pre."""
    return [
        Setting(setup=PATHS, placement=placement, init="xavier_uniform", depth=depth, seed=seed, kind="paths")
        for placement, depth in product(PLACEMENTS, PATH_DEPTHS)
        for seed in (SEEDS if placement in ("post", "pre") and depth <= 12 else SEEDS_IN_FULL)
    ]


def fig3_setups() -> dict[Setup, range]:
    """The setups of xiong_fig3, with their seeds."""
    further = [replace(XIONG_FIG3, name="xiong_fig3_zipf", data="zipf")]
    further += [
        replace(XIONG_FIG3, name=f"xiong_fig3_rho_{name}", encoder="cosine", encoder_cosine=cosine)
        for name, cosine in COSINES.items()
    ]
    large = replace(XIONG_FIG3, name="xiong_fig3_batch_64", batch=64)
    return {XIONG_FIG3: SEEDS, **dict.fromkeys(further, SEEDS), large: SEEDS_IN_FULL}


def _crossed(
    setups: Sequence[Setup], placements: Sequence[str], inits: Sequence[str], seeds: Sequence[int] = SEEDS
) -> list[Setting | WholeOnly]:
    """Every combination, at the depths of the catalogue."""
    settings = [
        Setting(setup=setup, placement=placement, init=init, depth=depth, seed=seed)
        for setup, placement, init, depth, seed in product(setups, placements, inits, CATALOGUE_DEPTHS, seeds)
    ]
    return [setting if setting.seed in SEEDS_IN_FULL else WholeOnly(setting=setting) for setting in settings]


GRIDS: dict[str, Grid] = {
    "page": page,
    "page_dense": page_dense,
    "deep": deep,
    "catalogue": catalogue,
    "norms": norms,
    "embeddings": embeddings,
    "zipf": zipf,
    "shape": shape,
    "xiong_theory": xiong_theory,
    "xiong_fig3": xiong_fig3,
    "paths": paths,
}
"""Every grid the shipped store is made of, by name."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What some grids ask for: by grid each setting once, with the reason for skipping it or None.

    partly holds by grid the keys of settings of which it asks for the whole-stack readings only.
    """

    grids: dict[str, list[tuple[Setting, str | None]]]
    partly: dict[str, set[str]] = field(default_factory=dict)

    def settings(self) -> list[Setting]:
        """Every setting to be measured, once, whatever grids ask for it."""
        asked = {s.key: s for cells in self.grids.values() for s, skipped in cells if skipped is None}
        return list(asked.values())

    def whole_only(self) -> set[str]:
        """Keys of the settings of which no grid asks for more than the whole-stack readings."""
        in_full = {
            s.key for grid, cells in self.grids.items() for s, _ in cells if s.key not in self.partly.get(grid, ())
        }
        return set().union(*self.partly.values()) - in_full

    def rows(self) -> set[tuple[str, str, str | None, bool]]:
        """Grid, key, reason and whether all readings are asked for, of every cell, as the store keeps them."""
        return {
            (grid, s.key, skipped, s.key not in self.partly.get(grid, ()))
            for grid, cells in self.grids.items()
            for s, skipped in cells
        }


def plan_of(names: list[str], dtype: str = DTYPES[0]) -> Plan:
    """The plan of some grids, of all where names is empty. ValueError for an unknown name.

    In another precision than the default, grids and setups have names of their own, such as page_float64.
    """
    for name in names:
        if name not in GRIDS:
            raise ValueError(f"grid is {name!r}: no such grid. Choose one of {', '.join(GRIDS)}.")
    asked = {name: GRIDS[name]() for name in names or GRIDS}
    if dtype != DTYPES[0]:
        asked = {f"{name}_{dtype}": [_in_precision(e, dtype) for e in entries] for name, entries in asked.items()}
    partly = {name: {e.setting.key for e in entries if isinstance(e, WholeOnly)} for name, entries in asked.items()}
    return Plan(grids={name: _cells(entries) for name, entries in asked.items()}, partly=partly)


def _in_precision(entry: Setting | Skipped | WholeOnly, dtype: str) -> Setting | Skipped | WholeOnly:
    if not isinstance(entry, Setting):
        return replace(entry, setting=_in_precision(entry.setting, dtype))
    return replace(entry, setup=replace(entry.setup, name=f"{entry.setup.name}_{dtype}", dtype=dtype))


def _cells(entries: list[Setting | Skipped | WholeOnly]) -> list[tuple[Setting, str | None]]:
    pairs = [(e, None) if isinstance(e, Setting) else (e.setting, getattr(e, "reason", None)) for e in entries]
    return list({setting.key: (setting, reason) for setting, reason in pairs}.values())
