"""Inits: how weights are drawn. Each is one small function registered by name.

An init maps the raw draw of a tensor, U(0, 1), to its values:

    scheme(weight, raw) -> values, of raw's shape [n_out, n_in]

weight says which tensor this is. Unless an init is registered with whole_model=True, embeddings and head are the
setup's: embeddings N(0, embedding_std^2), head Xavier-uniform.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lnmeasure.core.draws import normal, raw_draw, uniform
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.core.registry import Entry, Registry
from lnmeasure.core.weight import Weight
from lnmeasure.records import Setting, Setup


@dataclass(frozen=True, kw_only=True)
class Init(Entry):
    """A registered scheme, and whether it draws embeddings and head too (the setup's embedding_std then rests)."""

    whole_model: bool


INITS = Registry("init")


def init(*, source: str, whole_model: bool = False, unconfirmed: str | None = None) -> Callable:
    """Register the decorated scheme and hand it back unchanged."""

    def register(function: Callable) -> Callable:
        INITS.add(Init(function=function, source=source, whole_model=whole_model, unconfirmed=unconfirmed))
        return function

    return register


@init(source="Glorot and Bengio 2010")
def xavier_uniform(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ U(-a, a), a = sqrt(6 / (n_in + n_out))"""
    return uniform(raw, math.sqrt(3 * weight.xavier_variance))


@init(source="Glorot and Bengio 2010")
def xavier_normal(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ N(0, 2 / (n_in + n_out))"""
    return normal(raw, math.sqrt(weight.xavier_variance))


@init(source="Xavier, with the residual scaling of Radford et al. 2019 (GPT-2) alone")
def xavier_residual(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ U(-a, a), a = sqrt(6 / (n_in + n_out)); W_O and W_2 divided by sqrt(2L)"""
    scale = math.sqrt(2 * weight.depth) if weight.is_residual_output else 1.0
    return xavier_uniform(weight, raw) / scale


@init(source="Radford et al. 2019 (GPT-2) and its released code", whole_model=True)
def gpt2(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ N(0, 0.02^2); W_O and W_2 ~ N(0, 0.02^2 / (2L)); embeddings and head N(0, 0.02^2) too"""
    return normal(raw, 0.02 / math.sqrt(2 * weight.depth) if weight.is_residual_output else 0.02)


@init(source="a normal distribution of one size everywhere, as in BERT, Devlin et al. 2018", whole_model=True)
def normal_002(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ N(0, 0.02^2); embeddings and head too"""
    return normal(raw, 0.02)


@init(source="He et al. 2015, fan-in; gain sqrt(2) where a ReLU follows")
def he(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ N(0, 1 / n_in); W_1 ~ N(0, 2 / n_in)"""
    return normal(raw, math.sqrt((2 if weight.role == "w1" else 1) / weight.n_in))


@init(source="LeCun et al. 1998, fan-in")
def lecun(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ N(0, 1 / n_in)"""
    return normal(raw, math.sqrt(1 / weight.n_in))


@init(source="torch.nn.Linear's default")
def torch_linear(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ U(-a, a), a = 1 / sqrt(n_in)"""
    return uniform(raw, 1 / math.sqrt(weight.n_in))


@init(source="SmallInit, Nguyen and Salazar 2019, and Wang's rule, as in GPT-NeoX-20B, arXiv:2204.06745")
def small_wang(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ N(0, 2 / (5d)); W_O and W_2 ~ N(0, 4 / (L^2 d))"""
    d = weight.width
    return normal(raw, 2 / (weight.depth * math.sqrt(d)) if weight.is_residual_output else math.sqrt(2 / (5 * d)))


@init(
    source="DS-Init, Zhang et al. 2019, arXiv:1908.11365",
    unconfirmed="the square root of l: its authors' code divides the variance by it, so that sizes fall as l^(-1/4)",
)
def ds_init(weight: Weight, raw: Tensor) -> Tensor:
    """W ~ U(-a, a) / sqrt(l), a = sqrt(6 / (n_in + n_out)), l the block from 1"""
    return xavier_uniform(weight, raw) / math.sqrt(weight.block)


@init(source="Saxe et al. 2013; gain sqrt(2) where a ReLU follows")
def orthogonal(weight: Weight, raw: Tensor) -> Tensor:
    """W^T W = I, or W W^T = I where W is wide; W_1 times sqrt(2)"""
    gain = math.sqrt(2) if weight.role == "w1" else 1.0
    drawn = normal(raw, 1.0)
    tall = drawn if weight.n_out >= weight.n_in else drawn.T
    basis, triangle = torch.linalg.qr(tall)
    basis = basis * triangle.diagonal().sign()  # or the result would not be drawn evenly over all of them
    return gain * (basis if weight.n_out >= weight.n_in else basis.T)


@init(source="the simplification in Xiong et al. 2020, arXiv:2002.04745: attention is a plain mean")
def theory(weight: Weight, raw: Tensor) -> Tensor:
    """W_Q = W_K = 0; the others W ~ N(0, 2 / (n_in + n_out))"""
    return torch.zeros_like(raw) if weight.role in ("wq", "wk") else xavier_normal(weight, raw)


Weights = list[dict[str, Tensor]]


def draw_blocks(setting: Setting) -> Weights:
    """The weights of every block: a dict by role of [n_out, n_in] tensors in the setup's dtype."""
    return [draw_block(setting, block, setting.depth) for block in range(1, setting.depth + 1)]


def draw_block(setting: Setting, block: int, depth: int | None, stack: str = "decoder") -> dict[str, Tensor]:
    """The weights of one block, for a stack of a depth, or of any: the setting's own depth does not count."""
    shapes = setting.setup.weight_shapes()
    return {role: draw_weight(setting, role, block, shape, depth, stack) for role, shape in shapes.items()}


def draw_weight(
    setting: Setting, role: str, block: int, shape: tuple[int, int], depth: int | None, stack: str = "decoder"
) -> Tensor:
    """One tensor of shape [n_out, n_in] as the setting's init draws it, in the setup's dtype.

    In blocks the gain that the placement prescribes comes on top.
    """
    weight = Weight(role=role, n_in=shape[1], n_out=shape[0], block=block, stack_depth=depth)
    name = role if stack == "decoder" else f"{stack}_{role}"
    values = INITS[setting.init].function(weight, raw_draw(setting.seed, name, block, shape))
    gain = PLACEMENTS[setting.placement].gain
    if gain and block:
        values = values * gain(weight)
    return values.to(getattr(torch, setting.setup.dtype))


def draw_embedding(setting: Setting) -> Tensor:
    """[V, d] embedding: N(0, embedding_std^2) of the setup, or the init's where it draws the whole model."""
    return _outside_blocks(setting, "embedding", lambda raw: normal(raw, setting.setup.embedding_std))


def draw_head(setting: Setting) -> Tensor:
    """[V, d] head: Xavier-uniform, or the init's where it draws the whole model. For an untied head."""
    bound = math.sqrt(6 / (setting.setup.width + setting.setup.vocab))
    return _outside_blocks(setting, "head", lambda raw: uniform(raw, bound))


def _outside_blocks(setting: Setting, role: str, of_setup: Callable[[Tensor], Tensor]) -> Tensor:
    setup: Setup = setting.setup
    if INITS[setting.init].whole_model:
        return draw_weight(setting, role, 0, (setup.vocab, setup.width), setting.depth)
    raw = raw_draw(setting.seed, role, 0, (setup.vocab, setup.width))
    return of_setup(raw).to(getattr(torch, setup.dtype))
