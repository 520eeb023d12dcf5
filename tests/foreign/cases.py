"""Which placement is held against which model that nobody here wrote. Imports no foreign package."""

from dataclasses import dataclass, fields, replace

from lnmeasure.records import Setting, Setup


@dataclass(frozen=True, kw_only=True)
class Package:
    """What is installed, in pinned versions, for one module to be imported."""

    requirements: tuple[str, ...]
    module: str

    @property
    def adapter(self) -> str:
        """The module that speaks to it."""
        return f"tests.foreign.of_{self.module}"


PACKAGES = {
    "transformers": Package(
        requirements=(
            "transformers==4.57.6",
            "huggingface-hub==0.36.2",
            "tokenizers==0.22.2",
            "regex==2026.11.19",
            "safetensors==0.8.0",
        ),
        module="transformers",
    ),
    "x_transformers": Package(
        requirements=(
            "x-transformers==2.31.10",
            "einops==0.8.2",
            "einx==0.4.3",
            "frozendict==2.5.1",
            "loguru==0.7.3",
            "torch-einops-utils==0.2.0",
        ),
        module="x_transformers",
    ),
    # of version 1, which has ResiDual
    "x_transformers_1": Package(requirements=("x-transformers==1.31.14", "einops==0.8.2"), module="x_transformers"),
    "torchscale": Package(requirements=("torchscale==0.3.0",), module="torchscale"),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model of a package, by the name of its builder, and the setting whose readings it should give."""

    package: str
    model: str
    setting: Setting

    def __str__(self) -> str:
        values = [(getattr(self.setting.setup, field.name), getattr(BASE, field.name)) for field in fields(Setup)]
        changes = [str(value) for value, usual in values if value != usual]
        return "-".join([self.package, self.model, self.setting.placement, f"L{self.setting.depth}", *changes])


# sqrt(width) is a power of two: Gemma 2 multiplies its embeddings by it, and dividing by it first then changes no bit
BASE = Setup(name="foreign", width=64, heads=4, seq_len=8, batch=4, vocab=50)
RMS = replace(BASE, norm="rmsnorm")
NO_EPS = replace(RMS, eps=0.0)
PAGE = Setup(name="page")


def _case(package: str, model: str, placement: str, setup: Setup, depth: int = 4) -> Case:
    setting = Setting(setup=setup, placement=placement, init="xavier_uniform", depth=depth, seed=1)
    return Case(package=package, model=model, setting=setting)


def _both(package: str, model: str, placement: str, setup: Setup = BASE, depth: int = 4) -> list[Case]:
    """In float32, and in float64 where the package computes all of it in float64."""
    setups = setup, replace(setup, dtype="float64")
    return [_case(package, model, placement, each, depth) for each in setups]


CASES = [
    *_both("transformers", "gpt2", "pre"),
    *_both("transformers", "gpt2", "pre", replace(BASE, eps=0.1)),
    *_both("transformers", "gpt2_scaled", "layernorm_scaling"),
    *_both("transformers", "bert", "post"),
    *_both("transformers", "bert_then_gpt2", "mix_ln", depth=9),
    *_both("transformers", "gpt2", "pre", PAGE, depth=12),
    *_both("transformers", "bert", "post", PAGE, depth=12),
    _case("transformers", "olmo2", "reordered", RMS),
    _case("transformers", "olmo2", "reordered", replace(PAGE, norm="rmsnorm"), depth=12),
    _case("transformers", "olmo2_without_qk_norm", "reordered_no_qk", RMS),
    _case("transformers", "gemma2", "sandwich", RMS),
    _case("transformers", "gemma2", "sandwich", replace(RMS, activation="gelu", eps=0.1)),
    _case("transformers", "granite", "pre", RMS),
    _case("transformers", "granite_depth_mup", "depth_mup", RMS),
    _case("transformers", "granite_completep", "completep", RMS),
    *_both("x_transformers", "pre", "pre"),
    *_both("x_transformers", "post", "post"),
    *_both("x_transformers", "post", "post", replace(BASE, attention="bidirectional", activation="gelu")),
    *_both("x_transformers", "none", "none"),
    *_both("x_transformers", "sandwich", "sandwich"),
    *_both("x_transformers", "deepnorm", "deepnorm"),
    *_both("x_transformers", "keel", "keel"),
    *_both("x_transformers", "admin", "admin"),
    *_both("x_transformers", "normformer", "normformer"),
    *_both("x_transformers", "hybridnorm", "hybridnorm", NO_EPS),
    *_both("x_transformers", "rezero", "rezero"),
    *_both("x_transformers", "layerscale", "layerscale"),
    *_both("x_transformers", "layerscale", "layerscale", depth=20),
    *_both("x_transformers", "depth_mup", "depth_mup"),
    *_both("x_transformers", "completep", "completep"),
    *_both("x_transformers_1", "residual", "residual", replace(BASE, activation="gelu")),
    _case("torchscale", "pre", "pre", BASE),
    _case("torchscale", "post", "post", BASE),
    _case("torchscale", "deepnorm", "deepnorm", BASE),
    _case("torchscale", "deepnorm", "deepnorm", BASE, depth=9),
]

NOT_COMPARED = {"b2t": "no package in the registry has its connection"}
