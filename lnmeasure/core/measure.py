"""measure: one Setting becomes its Readings."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lnmeasure.core import metrics
from lnmeasure.core.draws import integers, normal, raw_draw
from lnmeasure.core.initialise import INITS, draw_blocks, draw_embedding, draw_head
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.core.stack import forward
from lnmeasure.core.watch import Instrument
from lnmeasure.records import Reading, Setting


def check_names(setting: Setting) -> None:
    """ValueError that lists what is registered where the setting's placement or init is not."""
    PLACEMENTS[setting.placement], INITS[setting.init]


def measure(setting: Setting, device: str = "cpu") -> list[Reading]:
    """Every reading of one cell: draw, build, forward, backward, read.

    The loss is the mean cross-entropy over all B T tokens, in nats. Draws are made on the CPU whatever the device.
    ValueError where placement or init is not registered.
    """
    check_names(setting)
    weights = [{role: matrix.to(device) for role, matrix in block.items()} for block in draw_blocks(setting)]
    x, head = (tensor.to(device) for tensor in draw_ends(setting))
    targets = integers(setting.seed, "targets", setting.setup).to(device)

    instrument = Instrument(setting.setup)
    instrument.follow(weights)
    hidden = forward(x, weights, setting, instrument)
    loss = cross_entropy(hidden, head, targets)
    loss.backward()

    instrument.read("embedding_rms", metrics.rms(x))
    instrument.read("loss", loss.item())
    return instrument.readings(setting.depth)


def draw_ends(setting: Setting) -> tuple[Tensor, Tensor]:
    """x_0 [batch, seq, d], and the head [V, d], which is the embedding itself where the setup ties them."""
    setup = setting.setup
    if setup.input == "gaussian":
        raw = raw_draw(setting.seed, "inputs", 0, (setup.batch, setup.seq_len, setup.width))
        return normal(raw, setup.embedding_std).to(getattr(torch, setup.dtype)), draw_head(setting)
    embedding = draw_embedding(setting)
    head = embedding if setup.tied_head else draw_head(setting)
    return embedding[integers(setting.seed, "tokens", setup)], head


def cross_entropy(hidden: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """Mean over tokens of -ln p(target), in nats. hidden: [batch, seq, d], head: [V, d], targets: [batch, seq]."""
    return F.cross_entropy(F.linear(hidden, head).flatten(0, 1), targets.flatten())
