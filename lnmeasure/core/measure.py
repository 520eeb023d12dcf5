"""measure: a Setting becomes its Readings.

Settings that differ in depth may share one forward pass, and those that differ in seed may be run side by side.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

from lnmeasure.core import metrics
from lnmeasure.core.draws import integers, normal, raw_draw
from lnmeasure.core.initialise import INITS, draw_block, draw_embedding, draw_head, draw_weight
from lnmeasure.core.paths import measure_paths
from lnmeasure.core.placements import PLACEMENTS, Place
from lnmeasure.core.registry import DepthAsked
from lnmeasure.core.stack import begin, close, cross_entropy, main_stream, run_block
from lnmeasure.core.translation import measure_translation
from lnmeasure.core.watch import Bystander, Instrument
from lnmeasure.records import PathReading, Reading, Setting, Setup


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How settings are measured; the readings are the same in every manner.

    streaming keeps one stream tensor per block, and draws and runs each block a second time in the backward pass,
    instead of keeping all blocks. whole_only takes the whole-stack readings alone. Draws are always made on the CPU.
    """

    streaming: bool = False
    whole_only: bool = False
    device: str = "cpu"


PLAIN = Manner()


def check_names(setting: Setting) -> None:
    """ValueError that lists what is registered where the setting's placement or init is not."""
    PLACEMENTS[setting.placement], INITS[setting.init]


def measure(setting: Setting, manner: Manner = PLAIN) -> list[Reading] | list[PathReading]:
    """Every reading of one cell: draw, build, forward, backward, read. PathReadings where its kind is 'paths'.

    The loss is the mean cross-entropy over all B T tokens, in nats. ValueError where placement or init is unknown.
    """
    return measure_together([setting], manner)[0]


def measure_together(
    settings: Sequence[Setting], manner: Manner = PLAIN
) -> list[list[Reading]] | list[list[PathReading]]:
    """The readings of each of some settings that differ in depth or seed only, from one forward pass to the deepest.

    A stack of depth L is the first L blocks of a deeper one where neither placement nor init depends on L, which
    share_prefix says; only then may there be several depths, else ValueError. Each depth has its own backward pass.
    Several seeds are run side by side, each with every depth: that is for an accelerator, which a seed leaves idle.
    Products of matrices are then batched, and readings the same to rounding instead of bit for bit.
    """
    _require_alike(settings)
    if settings[0].kind == "paths":
        return [measure_paths(setting, draw_ends(setting)[0], manner.device) for setting in settings]
    if settings[0].setup.encoder != "none":
        return [_with_an_encoder(setting, manner) for setting in settings]
    return _Pass(settings, manner).readings()


def _with_an_encoder(setting: Setting, manner: Manner) -> list[Reading]:
    return measure_translation(setting, *draw_ends(setting), manner.whole_only, manner.device)


@cache
def share_prefix(placement: str, init: str) -> bool:
    """Whether a stack of this placement and init is the beginning of every deeper one: neither asks for the depth."""
    probe = Setup(name="probe", width=2, heads=1, seq_len=1, batch=1, vocab=2)
    setting = Setting(setup=probe, placement=placement, init=init, depth=3, seed=0)
    try:
        for role in ("embedding", "head"):
            draw_weight(setting, role, 0, (probe.vocab, probe.width), depth=None)
        for block in (1, 2, 3):
            matrices = draw_block(setting, block, depth=None)
            x = begin(torch.ones(1, 1, 2), setting)
            run_block(x, matrices, setting, Place(block=block, stack_depth=None), Bystander())
    except DepthAsked:
        return False
    return True


def draw_ends(setting: Setting) -> tuple[Tensor, Tensor]:
    """x_0 [batch, seq, d], and the head [V, d], which is the embedding itself where the setup ties them."""
    setup = setting.setup
    if setup.input == "gaussian":
        raw = raw_draw(setting.seed, "inputs", 0, (setup.batch, setup.seq_len, setup.width))
        return normal(raw, setup.embedding_std).to(getattr(torch, setup.dtype)), draw_head(setting)
    embedding = draw_embedding(setting)
    head = embedding if setup.tied_head else draw_head(setting)
    return embedding[integers(setting.seed, "tokens", setup)], head


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """One block that was run: its input and output, [batch, seq, d], its matrices, and its last residual sum."""

    block: int
    input: Tensor
    matrices: dict[str, Tensor]
    sum: Tensor
    output: Tensor

    def pull(self, wanted: dict[str, Tensor], cotangent: Tensor) -> dict[str, Tensor]:
        """Gradients with respect to what is wanted, from the one on the output; as often as one likes."""
        gradients = torch.autograd.grad(self.output, list(wanted.values()), cotangent, retain_graph=True)
        return dict(zip(wanted, gradients, strict=True))


class _Pass:
    """One forward pass to the deepest of some settings, seeds side by side, and one backward pass for each depth."""

    def __init__(self, settings: Sequence[Setting], manner: Manner) -> None:
        self._settings, self._manner = settings, manner
        self._setting = max(settings, key=lambda setting: setting.depth)
        self._depths = sorted({setting.depth for setting in settings})
        self._depth = self._setting.depth if len(self._depths) == 1 else None
        self._seeds = list({setting.seed: None for setting in settings})
        self._instrument = Instrument(self._setting.setup, len(self._seeds))
        self._memories: list[dict[str, Tensor]] = [{}]

    def readings(self) -> list[list[Reading]]:
        """Measure, and give the readings of each setting."""
        x, head = map(self._side_by_side, zip(*map(draw_ends, self._each_seed()), strict=True))
        targets = self._side_by_side([integers(seed, "targets", self._setting.setup) for seed in self._seeds])
        self._instrument.read("embedding_rms", [metrics.rms(part) for part in self._instrument.parts(x)])
        x = begin(x, self._setting)
        kept: list[_Segment | Tensor] = []
        cotangents: dict[int, Tensor] = {}
        # one tensor for all: a thousand small ones between what comes and goes would take twice the memory
        keeps_streams = self._manner.streaming and not self._manner.whole_only
        inputs = x.new_empty(self._setting.depth, *x.shape) if keeps_streams else None
        for block in range(1, self._setting.depth + 1):
            segment = self._run(x, block)
            if block in self._depths:
                cotangents[block] = self._end(segment, head, targets)
            if not self._manner.whole_only:
                kept.append(segment if inputs is None else inputs[block - 1].copy_(x))
            x = segment.output.detach()
            del segment
        if not self._manner.whole_only:
            self._back(kept, cotangents)
        blocks = not self._manner.whole_only
        return [self._instrument.readings(s.depth, self._seeds.index(s.seed), blocks) for s in self._settings]

    def _each_seed(self) -> list[Setting]:
        """The deepest setting of each seed."""
        return [replace(self._setting, seed=seed) for seed in self._seeds]

    def _side_by_side(self, tensors: Sequence[Tensor]) -> Tensor:
        """The tensors of all seeds as one, with an axis for them where there are several, on the device."""
        return (torch.stack(list(tensors)) if len(tensors) > 1 else tensors[0]).to(self._manner.device)

    def _run(self, x: Tensor, block: int) -> _Segment:
        """The forward pass of one block, with a graph where it is pulled as it is."""
        if self._manner.whole_only:
            return self._segment(x, block, Bystander(), graph=block in self._depths)
        return self._segment(x, block, self._instrument, graph=not self._manner.streaming)

    def _segment(self, x: Tensor, block: int, watch: Bystander, graph: bool) -> _Segment:
        drawn = [draw_block(setting, block, self._depth) for setting in self._each_seed()]
        matrices = {role: self._side_by_side([d[role] for d in drawn]).requires_grad_(graph) for role in drawn[0]}
        x = x.detach().requires_grad_(graph and block > 1 and not self._manner.whole_only)
        with torch.set_grad_enabled(graph):
            place = Place(block=block, stack_depth=self._depth, memory=dict(self._memories[block - 1]))
            output = run_block(x, matrices, self._setting, place, watch)
        self._memories[block:] = [place.memory]
        self._instrument.divided = watch.divided
        segment = _Segment(block=block, input=x, matrices=matrices, sum=watch.sum, output=output)
        watch.sum = None  # or it would keep the last block alive
        return segment

    def _end(self, segment: _Segment, head: Tensor, targets: Tensor) -> Tensor:
        """The end of the stack whose last block this is: loss, sigma, and the loss gradient on the block's output."""
        depth, output = segment.block, segment.output.detach().requires_grad_()
        dual = PLACEMENTS[self._setting.placement].dual
        if dual:  # the last norm of the stack is then the second stream's
            self._instrument.read_sigma(depth)
        hidden = close(output, self._setting, self._instrument)
        loss = cross_entropy(hidden, head, targets)
        self._instrument.read("loss", loss.detach().reshape(-1).tolist(), depth=depth)
        self._instrument.read_sigma(depth, "sigma_dual" if dual else "sigma")
        (cotangent,) = torch.autograd.grad(loss.sum(), output)
        if self._manner.whole_only:
            (top,) = segment.pull({"w2": segment.matrices["w2"]}, cotangent).values()
            self._instrument.read_weight_gradient("w2", top, depth, depth)
        return cotangent

    def _back(self, kept: list[_Segment | Tensor], cotangents: dict[int, Tensor]) -> None:
        """From the deepest block to the first, pull the gradient of every depth that reaches a block through it."""
        while kept:
            block, segment = len(kept), kept.pop()
            if isinstance(segment, Tensor):
                segment = self._segment(segment, block, Bystander(), graph=True)
            for depth in self._depths:
                if depth >= block:
                    cotangents[depth] = self._pull(segment, cotangents[depth], depth)

    def _pull(self, segment: _Segment, cotangent: Tensor, depth: int) -> Tensor:
        """Read every gradient at one block of the stack of a depth. The gradient on the block's input, but for x_0.

        Subnormal numbers count as zero, which spares hours of slow arithmetic on what no reading feels: in deep post-LN
        the gradient of all tokens but a sequence's first falls below them. Where a matrix comes to zero by it, all
        is done again with them, to tell an underflow from a zero.
        """
        streams = {"input": segment.input} if segment.input.requires_grad else {}
        streams |= {} if segment.sum is segment.output else {"sum": segment.sum}
        wanted = streams | segment.matrices
        with _subnormals_are_zero():
            gradients = segment.pull(wanted, cotangent)
        if not self._read_matrices(segment, gradients, depth):
            gradients = segment.pull(wanted, cotangent)
            self._read_matrices(segment, gradients, depth)
        leaving = main_stream(cotangent, self._setting)
        self._instrument.read_stream_gradient("grad_stream", leaving, segment.block, depth)
        self._instrument.read_stream_gradient("grad_presum", gradients.get("sum", leaving), segment.block, depth)
        return gradients.get("input", cotangent)

    def _read_matrices(self, segment: _Segment, gradients: dict[str, Tensor], depth: int) -> bool:
        """Read the gradient of every matrix. Whether none of them is zero."""
        read = self._instrument.read_weight_gradient
        norms = [read(role, gradients[role], segment.block, depth) for role in segment.matrices]
        return all(0.0 not in each for each in norms)


@contextmanager
def _subnormals_are_zero() -> Iterator[None]:
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _require_alike(settings: Sequence[Setting]) -> None:
    for setting in settings:
        check_names(setting)
    depths, seeds = {setting.depth for setting in settings}, {setting.seed for setting in settings}
    if len({replace(setting, depth=1, seed=0) for setting in settings}) != 1:
        raise ValueError(f"{len(settings)} settings to be measured together: they must differ in depth or seed only.")
    if len({(setting.depth, setting.seed) for setting in settings}) < len(depths) * len(seeds):
        raise ValueError(
            f"{len(settings)} settings to be measured together, of {len(depths)} depths and {len(seeds)} seeds: every "
            "seed must come with every depth."
        )
    if len(depths) > 1 and not share_prefix(settings[0].placement, settings[0].init):
        raise ValueError(
            f"{settings[0].placement} with {settings[0].init} depends on the depth of the stack, so its depths share "
            "nothing. Measure them one by one."
        )
