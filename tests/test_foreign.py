"""Placements against models nobody here wrote: same weights in, same stream and gradients out. Long: it installs them.

The core is held against packages of the registry, in pinned versions, each in a process of its own (tests/foreign).
"""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from lnmeasure.core.initialise import draw_blocks
from lnmeasure.core.measure import draw_ends, measure
from lnmeasure.core.placements import PLACEMENTS
from lnmeasure.core.stack import forward
from lnmeasure.core.watch import Bystander
from lnmeasure.core.weight import Weight
from lnmeasure.records import Setting
from tests.conftest import ROOT
from tests.foreign.cases import CASES, NOT_COMPARED, PACKAGES

TOLERANCE = {"float32": 1e-4, "float64": 1e-12}
"""Through 12 blocks at full size float32 leaves 9e-6 of either side against float64, where both agree to 5e-15."""


@pytest.fixture(scope="module")
def ask(tmp_path_factory) -> Callable[[str], dict]:
    """What a package says to its cases, once it is installed; each is asked once."""
    said: dict[str, dict] = {}

    def ask(package: str) -> dict:
        if package not in said:
            said[package] = answers_of(package, tmp_path_factory.mktemp(package))
        return said[package]

    return ask


def answers_of(package: str, folder) -> dict:
    """Install into a folder what is compared with, and nothing it depends on that it can do without."""
    wanted = ["--no-deps", "--target", str(folder), *PACKAGES[package].requirements]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted], check=True)
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.foreign.answers", package, str(folder / "answers.pt")],
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    answers = torch.load(folder / "answers.pt", weights_only=True)
    assert answers["home"].startswith(str(folder)), "another version than the pinned one was asked"
    return answers


def differences(setting: Setting, said: dict) -> dict[tuple[str, int | None], float]:
    """How far each foreign reading, and what the head reads, is from ours, relative to ours."""
    ours = {(reading.quantity, reading.block): reading.value for reading in measure(setting)}
    found = {key: relative(value, ours[key]) for key, value in said["readings"].items()}
    hidden = forward(draw_ends(setting)[0], draw_blocks(setting), setting, Bystander())
    return found | {("hidden", None): ((said["hidden"] - hidden).norm() / hidden.norm()).item()}


def relative(value: float, ours: float) -> float:
    if value == ours:
        return 0.0
    return abs(value - ours) / abs(ours) if ours else math.inf


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_foreign_model_with_our_weights_has_our_stream_and_gradients(case, ask):
    said = ask(case.package)["cases"][str(case)]
    found = differences(case.setting, said)
    expected = 1 + 1 + case.setting.depth * (3 + len(case.setting.setup.weight_shapes()))
    assert len(found) == expected
    worst = max(found, key=found.get)
    print(f"\n{case}: {len(found)} readings, the farthest {worst} by {found[worst]:.1e}")
    assert found[worst] < TOLERANCE[case.setting.setup.dtype], worst


@pytest.mark.soak
@pytest.mark.parametrize("case", [case for case in CASES if case.setting.setup.name != "page"], ids=str)
def test_the_comparison_fails_with_any_other_placement(case, ask):
    """The control: not one of the others is within a hundred tolerances of the foreign model."""
    said = ask(case.package)["cases"][str(case)]
    others = [replace(case.setting, placement=name) for name in PLACEMENTS if name != case.setting.placement]
    farthest = {other.placement: max(differences(other, said).values()) for other in others}
    nearest = min(farthest, key=farthest.get)
    print(f"\n{case}: the nearest other is {nearest}, off by {farthest[nearest]:.1e}")
    assert farthest[nearest] > 100 * TOLERANCE[case.setting.setup.dtype], nearest


@pytest.mark.soak
def test_the_authors_of_deepnorm_scale_the_same_matrices_by_the_same_beta(ask):
    gain = PLACEMENTS["deepnorm"].gain
    for (role, depth), beta in ask("torchscale")["further"].items():
        weight = Weight(role=role, n_in=8, n_out=8, block=1, stack_depth=depth)
        assert gain(weight) == pytest.approx(beta, rel=1e-6), (role, depth)


def test_every_placement_is_compared_or_said_not_to_be():
    compared = {case.setting.placement for case in CASES}
    assert compared | NOT_COMPARED.keys() == set(PLACEMENTS)
    assert not compared & NOT_COMPARED.keys()


def test_every_case_has_a_name_of_its_own():
    assert len({str(case) for case in CASES}) == len(CASES)


def test_the_way_a_reading_is_off_is_felt():
    assert relative(1.0, 1.0) == relative(0.0, 0.0) == 0.0
    assert relative(1e-30, 0.0) == math.inf
    assert relative(1.1, 1.0) == pytest.approx(0.1)


def test_the_cases_use_every_package():
    assert {case.package for case in CASES} == PACKAGES.keys()
