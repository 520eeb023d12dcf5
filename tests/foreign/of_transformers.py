"""Hugging Face's transformers: GPT-2, BERT, OLMo 2, Gemma 2 and Granite, built from their config classes.

Positions are neutral: GPT-2's embeddings of them are zero, elsewhere every token is at position 0, where rotary
embeddings turn nothing. The gate of a gated FFN is made neutral too: what its activation is multiplied by is one.
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    Gemma2Config,
    Gemma2Model,
    GPT2Config,
    GPT2Model,
    GraniteConfig,
    GraniteModel,
    Olmo2Config,
    Olmo2Model,
)
from transformers.models.bert.modeling_bert import BertEncoder

from lnmeasure.records import Setting, Setup
from tests.foreign.model import Block, Model, Probe, Slot


def gpt2(setting: Setting) -> Model:
    setup = setting.setup
    config = GPT2Config(
        vocab_size=setup.vocab,
        n_positions=setup.seq_len,
        n_embd=setup.width,
        n_layer=setting.depth,
        n_head=setup.heads,
        n_inner=setup.d_ff,
        activation_function=setup.activation,
        layer_norm_epsilon=setup.eps,
        attn_implementation="eager",
        use_cache=False,
    )
    model = GPT2Model(config).eval()
    model.wpe.weight.data.zero_()

    def run(x: Tensor) -> Tensor:
        return model(inputs_embeds=x).last_hidden_state

    return Model(run=run, module=model, blocks=[_gpt2_block(block, setup.width) for block in model.h])


def _gpt2_block(block: nn.Module, width: int) -> Block:
    """Its matrices are [n_in, n_out]; queries, keys and values lie side by side."""
    fused = block.attn.c_attn.weight
    matrices = {
        f"w{letter}": Slot(fused, partial(_columns, start=i * width, end=(i + 1) * width))
        for i, letter in enumerate("qkv")
    }
    others = {"wo": block.attn.c_proj, "w1": block.mlp.c_fc, "w2": block.mlp.c_proj}
    matrices |= {role: Slot(conv.weight, torch.t) for role, conv in others.items()}
    return Block(matrices, sum=Probe(block), output=Probe(block))


def _columns(matrix: Tensor, start: int, end: int) -> Tensor:
    return matrix[:, start:end].T


def gpt2_scaled(setting: Setting) -> Model:
    """LayerNorm Scaling as GPT-2's own norms, with a gain of 1 / sqrt(l)."""
    model = gpt2(setting)
    for number, block in enumerate(model.module.h, start=1):
        for norm in (block.ln_1, block.ln_2):
            norm.weight.data.fill_(1 / math.sqrt(number))
    return model


def bert(setting: Setting, depth: int | None = None) -> Model:
    """BERT's encoder as a decoder, fed with the stream itself: its embeddings have a norm of their own."""
    setup = setting.setup
    config = BertConfig(
        hidden_size=setup.width,
        num_hidden_layers=setting.depth if depth is None else depth,
        num_attention_heads=setup.heads,
        intermediate_size=setup.d_ff,
        hidden_act=setup.activation,
        layer_norm_eps=setup.eps,
        is_decoder=True,
        use_cache=False,
        attn_implementation="eager",
    )
    model = BertEncoder(config).eval()
    mask = torch.full((setup.seq_len, setup.seq_len), -math.inf).triu(1)[None, None]

    def run(x: Tensor) -> Tensor:
        return model(x, attention_mask=mask.to(x.dtype), use_cache=False).last_hidden_state

    return Model(run=run, module=model, blocks=[_bert_block(layer) for layer in model.layer])


def _bert_block(layer: nn.Module) -> Block:
    own = layer.attention.self
    linears = {"wq": own.query, "wk": own.key, "wv": own.value, "wo": layer.attention.output.dense}
    linears |= {"w1": layer.intermediate.dense, "w2": layer.output.dense}
    norm = layer.output.LayerNorm
    return Block(_slots(linears), sum=Probe(norm, "input"), output=Probe(norm))


def bert_then_gpt2(setting: Setting) -> Model:
    """Mix-LN: a quarter of the blocks are BERT's, the others GPT-2's, with its final norm."""
    depth = setting.depth // 4
    below = bert(setting, depth)
    above = gpt2(Setting(**vars(setting) | {"depth": setting.depth - depth}))

    def run(x: Tensor) -> Tensor:
        return above.run(below.run(x))

    modules = nn.ModuleList([below.module, above.module])
    return Model(run=run, module=modules, blocks=below.blocks + above.blocks)


def rotary(model_class: type, config_class: type, setting: Setting, **options: object) -> Model:
    """OLMo 2, Gemma 2 and Granite, which share names of modules and of most options."""
    setup = setting.setup
    config = config_class(
        vocab_size=setup.vocab,
        hidden_size=setup.width,
        num_hidden_layers=setting.depth,
        num_attention_heads=setup.heads,
        num_key_value_heads=setup.heads,
        intermediate_size=setup.d_ff,
        rms_norm_eps=setup.eps,
        pad_token_id=0,
        use_cache=False,
        attn_implementation="eager",
        **options,
    )
    model = model_class(config).eval()
    scale = math.sqrt(setup.width) if model_class is Gemma2Model else 1.0  # Gemma 2 multiplies embeddings by it
    for layer in model.layers:
        layer.mlp.up_proj = One()

    def run(x: Tensor) -> Tensor:
        nowhere = torch.zeros(1, setup.seq_len, dtype=torch.long)
        mask = torch.full((setup.seq_len, setup.seq_len), -math.inf).triu(1)[None, None]
        masks = {"full_attention": mask, "sliding_attention": mask} if model_class is Gemma2Model else mask
        return model(inputs_embeds=x / scale, position_ids=nowhere, attention_mask=masks).last_hidden_state

    return Model(run=run, module=model, blocks=[_rotary_block(layer) for layer in model.layers])


class One(nn.Module):
    """The factor 1, whatever comes in."""

    def forward(self, x: Tensor) -> Tensor:
        return x.new_ones(())


def _rotary_block(layer: nn.Module) -> Block:
    own, mlp = layer.self_attn, layer.mlp
    linears = {"wq": own.q_proj, "wk": own.k_proj, "wv": own.v_proj, "wo": own.o_proj}
    linears |= {"w1": mlp.gate_proj, "w2": mlp.down_proj}
    return Block(_slots(linears), sum=Probe(layer), output=Probe(layer))


def _slots(linears: dict[str, nn.Module]) -> dict[str, Slot]:
    return {role: Slot(linear.weight) for role, linear in linears.items()}


def olmo2(setting: Setting) -> Model:
    return rotary(Olmo2Model, Olmo2Config, setting, hidden_act=setting.setup.activation)


def olmo2_without_qk_norm(setting: Setting) -> Model:
    model = olmo2(setting)
    for layer in model.module.layers:
        layer.self_attn.q_norm = layer.self_attn.k_norm = nn.Identity()
    return model


def gemma2(setting: Setting) -> Model:
    setup: Setup = setting.setup
    return rotary(
        Gemma2Model,
        Gemma2Config,
        setting,
        head_dim=setup.d_head,
        query_pre_attn_scalar=setup.d_head,
        attn_logit_softcapping=None,
        hidden_activation=setup.activation,
    )


def granite(setting: Setting, multiplier: float = 1.0) -> Model:
    """Llama's blocks, with a multiplier of the branch; that of the logits is 1/sqrt(d_head), as everywhere else."""
    setup = setting.setup
    options = {"attention_multiplier": setup.d_head**-0.5, "residual_multiplier": multiplier}
    return rotary(GraniteModel, GraniteConfig, setting, hidden_act=setup.activation, **options)


BUILDERS = {
    "gpt2": gpt2,
    "gpt2_scaled": gpt2_scaled,
    "bert": bert,
    "bert_then_gpt2": bert_then_gpt2,
    "olmo2": olmo2,
    "olmo2_without_qk_norm": olmo2_without_qk_norm,
    "gemma2": gemma2,
    "granite": granite,
    "granite_depth_mup": lambda setting: granite(setting, (2 * setting.depth) ** -0.5),
    "granite_completep": lambda setting: granite(setting, 1 / (2 * setting.depth)),
}
