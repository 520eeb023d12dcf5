"""x-transformers: one decoder with options for where the norm sits and what multiplies stream and branch.

Where no option says it all, norms are taken out of its lists, which it allows for: in none, rezero, normformer,
keel and hybridnorm.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from x_transformers import Decoder, Encoder

from lnmeasure.records import Setting
from tests.foreign.model import Block, Model, Probe, Slot

BEFORE, AFTER_BRANCH, AFTER_SUM = range(3)
"""The three norms of a sublayer, in the order of its list."""


def build(setting: Setting, *, change: Callable[[nn.Module], None] = lambda stack: None, **options: object) -> Model:
    setup = setting.setup
    if setup.activation == "relu":  # gelu is the default, and the only one version 1 has
        options["ff_custom_activation"] = nn.ReLU()
    stack = (Decoder if setup.attention == "causal" else Encoder)(
        dim=setup.width,
        depth=setting.depth,
        heads=setup.heads,
        attn_dim_head=setup.d_head,
        attn_flash=setup.dtype == "float64",  # without, the softmax is taken in float32
        ff_mult=setup.ffn_ratio,
        ff_no_bias=True,
        **options,
    )
    change(stack)
    sublayers = list(stack.layers)
    pairs = zip(sublayers[::2], sublayers[1::2], strict=True)
    return Model(run=stack, module=stack, blocks=[_block(*pair) for pair in pairs])


def _block(attention: nn.ModuleList, ffn: nn.ModuleList) -> Block:
    inner = _unwrapped(attention[1])
    matrices = {f"w{letter}": Slot(getattr(inner, f"to_{letter}").weight) for letter in "qkv"}
    w1, w2 = (module.weight for module in ffn[1].modules() if isinstance(module, nn.Linear))
    matrices |= {"wo": Slot(inner.to_out.weight), "w1": Slot(w1), "w2": Slot(w2)}
    total, last = Probe(ffn[2]), ffn[0][AFTER_SUM]
    return Block(matrices, sum=total, output=total if last is None else Probe(last))


def _unwrapped(layer: nn.Module) -> nn.Module:
    """The sublayer without the multipliers around it."""
    while hasattr(layer, "fn"):
        layer = layer.fn
    return layer


def without(stack: nn.Module, which: int, kinds: str = "af") -> None:
    """Take one of the three norms away from attention (a) or FFN (f)."""
    for kind, (norms, _, _) in zip(stack.layer_types, stack.layers, strict=True):
        if kind in kinds:
            norms[which] = None


def closed_by_a_norm(stack: nn.Module) -> None:
    """The FFN's norms go, and one of them becomes the final norm."""
    stack.final_norm = stack.layers[-1][0][AFTER_SUM]
    without(stack, AFTER_SUM, "f")


def none(setting: Setting, **options: object) -> Model:
    return build(setting, change=partial(without, which=BEFORE), pre_norm_has_final_norm=False, **options)


def post(setting: Setting, **options: object) -> Model:
    return build(setting, pre_norm=False, **options)


def normformer(setting: Setting) -> Model:
    """Its sandwich norm would be after both sublayers: after the FFN it goes, as the paper has it."""
    change = partial(without, which=AFTER_BRANCH, kinds="f")
    return build(setting, change=change, sandwich_norm=True, ff_post_act_ln=True, attn_head_scale=True)


def hybridnorm(setting: Setting) -> Model:
    """Its queries, keys and values are normed head by head, without eps."""
    options = {"attn_qk_rmsnorm": True, "attn_value_rmsnorm": True, "attn_project_out": True, "use_rmsnorm": True}
    return post(setting, change=closed_by_a_norm, **options)


def keel(setting: Setting) -> Model:
    """Its first attention has no outer norm, and the first block's stream no multiplier: both are taken away."""
    return build(setting, change=_begun_plainly, pre_and_post_norm=True, scale_residual_constant=2 * setting.depth)


def _begun_plainly(stack: nn.Module) -> None:
    stack.layers[0][0][AFTER_SUM] = None
    for _, _, residual in stack.layers[:2]:
        residual.scale_residual_constant = 1


def layerscale(setting: Setting, build: Callable = build, value: float | None = None) -> Model:
    """With its unit offset, lambda is stored less 1, of which float32 keeps 1e-7: too little for 1e-5."""
    if value is None:
        value = 0.1 if setting.depth <= 18 else 1e-5
    return build(setting, use_layerscale=True, layerscale_init_value=value, norm_add_unit_offset=False)


def admin(setting: Setting) -> Model:
    """Its learned multiplier of the stream holds omega, which a profiling pass of its own model sets in sequence."""
    model = post(setting, scale_residual=True)
    residuals = [residual for _, _, residual in model.module.layers]
    for residual, following in pairwise(residuals):
        residual.register_forward_pre_hook(partial(_set_omega, following=following))
    return model


def _set_omega(residual: nn.Module, taken: tuple[Tensor, Tensor], following: nn.Module) -> None:
    branch, stream = taken
    variances = [x.detach().double().var(correction=0) for x in (stream * residual.residual_scale, branch)]
    following.residual_scale.data.fill_(torch.stack(variances).sum().sqrt().item())


BUILDERS = {
    "pre": build,
    "post": post,
    "none": none,
    "sandwich": partial(build, sandwich_norm=True),
    "deepnorm": lambda setting: post(setting, scale_residual_constant=(2 * setting.depth) ** 0.25),
    "keel": keel,
    "admin": admin,
    "normformer": normformer,
    "hybridnorm": hybridnorm,
    "residual": partial(build, resi_dual=True),
    "rezero": partial(layerscale, build=none, value=0.0),
    "layerscale": layerscale,
    "depth_mup": lambda setting: build(setting, depth_scale_residual=(2 * setting.depth) ** -0.5),
    "completep": lambda setting: build(setting, depth_scale_residual=1 / (2 * setting.depth)),
}
