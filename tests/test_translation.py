"""Stacks with an encoder against torch's own layers, and what sets the gradient's decay towards the input."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lnmeasure.core.draws import integers
from lnmeasure.core.initialise import draw_block
from lnmeasure.core.measure import draw_ends, measure, measure_together
from lnmeasure.core.metrics import rms
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.core.translation import draw_source, encoder_of, outputs_of_cosine
from lnmeasure.records import Setting, Setup
from lnmeasure.theory.predict import predict

SMALL = Setup(
    name="small", width=16, heads=2, ffn_ratio=2, seq_len=5, batch=3, vocab=11, dtype="float64", encoder="stack"
)
SUBLAYERED = [name for name in PLACEMENTS if not PLACEMENTS[name].whole_block and not PLACEMENTS[name].dual]


def cell(placement="post", depth=3, **changes):
    return Setting(setup=replace(SMALL, **changes), placement=placement, init="xavier_uniform", depth=depth, seed=2)


def read(setting):
    return {(r.stack, r.quantity, r.block): r.value for r in measure(setting)}


def of_torch(setting):
    """nn.TransformerEncoder and nn.TransformerDecoder with our weights: loss and gradients by block."""
    setup, first = setting.setup, setting.placement == "pre"
    options = {"dropout": 0.0, "batch_first": True, "norm_first": first, "bias": False, "dtype": torch.float64}
    shape = (setup.width, setup.heads, setup.d_ff)
    stacks = {}
    for stack, layer in (("encoder", nn.TransformerEncoderLayer), ("decoder", nn.TransformerDecoderLayer)):
        own = encoder_of(setting) if stack == "encoder" else setting
        layers = []
        for block in range(1, setting.depth + 1):
            one, drawn = layer(*shape, **options), draw_block(own, block, setting.depth, stack)
            pairs = [(one.self_attn, "w")] + ([(one.multihead_attn, "c")] if stack == "decoder" else [])
            with torch.no_grad():
                for attention, letter in pairs:
                    attention.in_proj_weight.copy_(torch.cat([drawn[letter + part] for part in "qkv"]))
                    attention.out_proj.weight.copy_(drawn[letter + "o"])
                one.linear1.weight.copy_(drawn["w1"])
                one.linear2.weight.copy_(drawn["w2"])
            layers.append(one)
        stacks[stack] = layers
    last = nn.LayerNorm(setup.width, dtype=torch.float64) if first else nn.Identity()
    start, head = draw_ends(setting)
    encoded = draw_source(setting)
    for layer in stacks["encoder"]:
        encoded = layer(encoded)
    x, encoded = start, last(encoded)
    hidden_from = torch.ones(setup.seq_len, setup.seq_len, dtype=torch.bool).triu(1)
    for layer in stacks["decoder"]:
        x = layer(x, encoded, tgt_mask=hidden_from)
    targets = integers(setting.seed, "targets", setup)
    loss = nn.functional.cross_entropy((last(x) @ head.T).flatten(0, 1), targets.flatten())
    loss.backward()
    found = {("decoder", "loss", None): loss.item()}
    for stack, layers in stacks.items():
        for block, layer in enumerate(layers, start=1):
            found[stack, "grad_w1", block] = layer.linear1.weight.grad.norm().item()
            found[stack, "grad_w2", block] = layer.linear2.weight.grad.norm().item()
            found[stack, "grad_wo", block] = layer.self_attn.out_proj.weight.grad.norm().item()
    return found


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_an_encoder_decoder_reads_what_torchs_own_layers_give(placement):
    """The same weights in, the same loss and gradients out; float64 leaves 1e-13."""
    setting = cell(placement)
    ours = read(setting)
    for name, value in of_torch(setting).items():
        assert ours[name] == pytest.approx(value, rel=1e-11), name


@pytest.mark.parametrize("placement", SUBLAYERED)
def test_every_placement_of_single_sublayers_has_readings_of_both_stacks(placement):
    found = read(cell(placement))
    assert {stack for stack, _, _ in found} == {"decoder", "encoder"}
    assert sum(name == "grad_w2" and value is not None for (_, name, _), value in found.items()) == 6
    assert found["decoder", "top_grad_w2", None] == found["decoder", "grad_w2", 3]


@pytest.mark.parametrize("placement", [name for name in PLACEMENTS if PLACEMENTS[name].whole_block])
def test_a_placement_without_a_rule_for_cross_attention_is_refused_by_name(placement):
    with pytest.raises(ValueError, match=f"placement is '{placement}': it updates by a whole block"):
        measure(cell(placement))


def test_encoder_and_decoder_draw_matrices_of_their_own():
    ours, theirs = draw_block(cell(), 1, 3), draw_block(encoder_of(cell()), 1, 3, "encoder")
    assert ours.keys() - theirs.keys() == {"cq", "ck", "cv", "co"}
    assert not any(torch.equal(ours[role], theirs[role]) for role in theirs)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.98])
def test_encoder_outputs_have_the_cosine_they_are_given(rho):
    """Of one seed the common part's size is off by sqrt(2 / d) (4 standard deviations)."""
    setup = Setup(name="wide", width=512, seq_len=16, batch=8, encoder="cosine", encoder_cosine=rho)
    outputs = outputs_of_cosine(Setting(setup=setup, placement="post", init="theory", depth=1, seed=0))
    tokens = nn.functional.normalize(outputs.flatten(0, 1), dim=-1)
    cosines = (tokens @ tokens.T)[~torch.eye(len(tokens), dtype=torch.bool)]
    assert cosines.mean().item() == pytest.approx(rho, abs=4 * math.sqrt(2 / 512) * rho * (1 - rho) + 0.01)
    assert rms(outputs) == pytest.approx(1, abs=4 * math.sqrt(2 / 512) * rho + 0.01)


def test_post_ln_decays_towards_the_input_by_the_root_of_one_plus_rho_a_block():
    """X6's origin: what the decoder reads of an encoder takes a share of the stream that its inputs do not come by.

    Of three seeds of width 256; the share of self-attention, and chance, leave a quarter.
    """
    setup = Setup(name="rho", ffn_ratio=2, seq_len=16, batch=16, encoder="cosine", encoder_cosine=0.5)
    ratios = []
    for seed in range(3):
        found = read(Setting(setup=setup, placement="post", init="xavier_uniform", depth=8, seed=seed))
        ratios.append(math.log(found["decoder", "grad_w2", 1] / found["decoder", "grad_w2", 8]))
    assert math.exp(sum(ratios) / 3) == pytest.approx(1.5 ** (-7 / 2), rel=0.25)


def test_depths_with_an_encoder_share_nothing_and_are_still_measured_in_one_go():
    cells = [cell(depth=2), cell(depth=3)]
    assert measure_together(cells) == [measure(one) for one in cells]


def test_theory_says_nothing_of_stacks_with_an_encoder():
    assert not predict(cell())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": "stack", "encoder_cosine": 0.5}, "encoder_cosine is 0.5 and Setup.encoder is 'stack'"),
        ({"encoder": "cosine", "encoder_cosine": 1.5}, "encoder_cosine is 1.5"),
        ({"encoder": "cosine", "encoder_cosine": -0.1}, "encoder_cosine is -0.1"),
        ({"encoder": "both"}, "encoder is 'both'"),
    ],
)
def test_an_encoder_that_cannot_be_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **changes)
