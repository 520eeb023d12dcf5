"""torchscale, by the authors of DeepNorm: its decoder with the norm before, after, and as DeepNorm.

It imports fairscale and timm for checkpointing and stochastic depth, neither of which is used here: empty stand-ins.
"""

import sys
from functools import partial
from types import ModuleType

import torch
from torch import Tensor, nn

from lnmeasure.records import Setting, Setup
from tests.foreign.model import Block, Model, Probe, Slot

STAND_INS = {"fairscale.nn": ("checkpoint_wrapper", "wrap"), "timm.models.layers": ("drop_path",)}
for path, names in STAND_INS.items():
    parts = path.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), ModuleType(path))
    vars(sys.modules[path]).update(dict.fromkeys(names))

from torchscale.architecture.config import DecoderConfig  # noqa: E402
from torchscale.architecture.decoder import Decoder  # noqa: E402

PLACES = {"self_attn.q_proj": "wq", "self_attn.k_proj": "wk", "self_attn.v_proj": "wv", "self_attn.out_proj": "wo"}
PLACES |= {"ffn.fc1": "w1", "ffn.fc2": "w2"}


def decoder(setup: Setup, depth: int, **options: object) -> Decoder:
    config = DecoderConfig(
        decoder_embed_dim=setup.width,
        decoder_attention_heads=setup.heads,
        decoder_ffn_embed_dim=setup.d_ff,
        decoder_layers=depth,
        activation_fn=setup.activation,
        layernorm_eps=setup.eps,
        no_output_layer=True,
        subln=False,
        **options,
    )
    return Decoder(config)


def build(setting: Setting, **options: object) -> Model:
    stack = decoder(setting.setup, setting.depth, **options)

    def run(x: Tensor) -> Tensor:
        return stack(x[..., 0], token_embeddings=x, features_only=True)[0]

    return Model(run=run, module=stack, blocks=[_block(layer) for layer in stack.layers])


def _block(layer: nn.Module) -> Block:
    matrices = {role: Slot(layer.get_submodule(place).weight) for place, role in PLACES.items()}
    output = Probe(layer)
    return Block(matrices, output if layer.normalize_before else Probe(layer.final_layer_norm, "input"), output)


BUILDERS = {
    "pre": partial(build, decoder_normalize_before=True),
    "post": partial(build, decoder_normalize_before=False),
    "deepnorm": partial(build, deepnorm=True),
}


def further() -> dict:
    """DeepNorm's beta as its authors have it, by (role, depth): what their init does to each matrix."""
    return {(role, depth): beta for depth in (1, 4, 9) for role, beta in _betas(depth).items()}


def _betas(depth: int) -> dict[str, float]:
    layers = []
    for options in ({"deepnorm": True}, {"decoder_normalize_before": False}):
        torch.manual_seed(0)
        layers.append(decoder(Setup(name="foreign", width=8, heads=2), depth, **options).layers[0])
    with_beta, without = ([layer.get_submodule(place).weight.norm().item() for place in PLACES] for layer in layers)
    return {role: a / b for role, a, b in zip(PLACES.values(), with_beta, without, strict=True)}
