"""The schedules that ship are well-formed, and what they call is what the job understands."""

import re
import shlex
import shutil
import subprocess

import pytest
import yaml

from jobs.refresh import _parse
from tests.conftest import ROOT

FOLDER = ROOT / "jobs" / "schedule"


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def container() -> dict:
    """The pod of the CronJob, and its one container."""
    (job, _) = yaml.safe_load_all(text("kubernetes.yml"))
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def objects(name: str) -> dict[tuple[str, str], dict]:
    """What a Kubernetes file creates, by kind and name."""
    return {(made["kind"], made["metadata"]["name"]): made for made in yaml.safe_load_all(text(name))}


def arguments() -> dict[str, list[str]]:
    """What each schedule passes to jobs.refresh."""
    called = {
        name: shlex.split(re.search(r"-m jobs\.refresh ([^>\n]*)", text(name)).group(1))
        for name in ("lnmeasure.cron", "lnmeasure-refresh.service")
    }
    called["github-actions.yml"] = shlex.split(
        re.search(r"make refresh ARGS='([^']*)'", text("github-actions.yml")).group(1)
    )
    called["kubernetes.yml"] = container()["containers"][0]["args"]
    return called


@pytest.mark.parametrize("name", arguments())
def test_every_schedule_declares_its_interval_and_a_budget_within_it(name):
    options = _parse(arguments()[name])
    assert options.every == 86400
    assert 0 < options.budget < options.every


def test_every_schedule_runs_once_a_day_at_the_declared_time():
    five = [text("lnmeasure.cron").splitlines()[-1].split()[:5]]
    workflow = yaml.safe_load(text("github-actions.yml"))
    five.append(workflow[True]["schedule"][0]["cron"].split())  # yaml reads the key 'on' as true
    five.append(next(yaml.safe_load_all(text("kubernetes.yml")))["spec"]["schedule"].split())
    assert {tuple(fields) for fields in five} == {("17", "2", "*", "*", "*")}
    assert "OnCalendar=*-*-* 02:17:00" in text("lnmeasure-refresh.timer")


def test_no_schedule_runs_two_refreshes_at_once_and_each_gives_sigterm_time_to_publish():
    (job, claim) = yaml.safe_load_all(text("kubernetes.yml"))
    assert (job["kind"], claim["kind"]) == ("CronJob", "PersistentVolumeClaim")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    assert container()["terminationGracePeriodSeconds"] >= 10
    assert container()["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert container()["securityContext"]["runAsNonRoot"] is True
    assert yaml.safe_load(text("github-actions.yml"))["concurrency"]["cancel-in-progress"] is False
    assert int(re.search(r"TimeoutStopSec=(\d+)", text("lnmeasure-refresh.service")).group(1)) >= 10
    assert "Persistent=true" in text("lnmeasure-refresh.timer")


def test_dask_workers_have_one_thread_and_dask_yaml_and_every_scheduler_address_is_one():
    slurm, cluster = text("dask-workers.slurm"), objects("kubernetes-dask.yml")
    (worker,) = cluster["Deployment", "lnmeasure-dask-worker"]["spec"]["template"]["spec"]["containers"]
    commands = [slurm.partition("exec ")[2].replace("\\\n", ""), shlex.join(worker["command"])]
    for command in commands:
        assert "--nworkers 1 --nthreads 1 " in command
    assert "DASK_CONFIG=$PWD/jobs/schedule/dask.yaml" in slurm
    assert worker["env"] == [{"name": "DASK_CONFIG", "value": "/srv/lnmeasure/jobs/schedule/dask.yaml"}]
    called = [text("kubernetes-dask.yml").splitlines()[0].partition("have: ")[2].replace(",", "")]
    called += re.findall(r"-m jobs\.refresh (--engine dask [^`\n]*)", (ROOT / "README.md").read_text(encoding="utf-8"))
    addresses = {_parse(shlex.split(command)).scheduler for command in called}
    assert addresses == {"tcp://lnmeasure-dask:8786", "tcp://HOST:8786", "tcp://login-1:8786"}
    assert "tcp://lnmeasure-dask:8786" in worker["command"]


def test_kubernetes_lets_only_workers_and_the_refresh_reach_the_dask_scheduler():
    cluster, (job, _) = objects("kubernetes-dask.yml"), yaml.safe_load_all(text("kubernetes.yml"))
    labels = [
        made["spec"]["template"]["metadata"]["labels"]
        for made in (*(made for (kind, _), made in cluster.items() if kind == "Deployment"), job["spec"]["jobTemplate"])
    ]
    scheduler, worker, refresh = labels
    policy = cluster["NetworkPolicy", "lnmeasure-dask"]["spec"]
    assert policy["podSelector"]["matchLabels"] == scheduler
    assert [who["podSelector"]["matchLabels"] for who in policy["ingress"][0]["from"]] == [worker, refresh]
    assert cluster["Service", "lnmeasure-dask"]["spec"]["selector"] == scheduler


def test_dask_yaml_sets_what_a_nanny_gives_its_worker():
    from dask.config import collect_yaml, merge
    from distributed.config import defaults

    theirs = merge(defaults, *collect_yaml([str(FOLDER / "dask.yaml")]))["distributed"]["nanny"]["pre-spawn-environ"]
    assert theirs["MALLOC_TRIM_THRESHOLD_"] == theirs["MALLOC_MMAP_THRESHOLD_"] == 2**30
    assert theirs["OMP_NUM_THREADS"] == 1


def test_slurm_runs_the_script_as_bash_understands_it():
    assert subprocess.run(["bash", "-n", FOLDER / "dask-workers.slurm"], check=False).returncode == 0


def test_systemd_accepts_the_units(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    for name in ("lnmeasure-refresh.service", "lnmeasure-refresh.timer"):
        here = text(name).replace("/srv/lnmeasure/.venv/bin/python", "/bin/true")
        (tmp_path / name).write_text(here, encoding="utf-8")
    command = ["systemd-analyze", "verify", *map(str, sorted(tmp_path.iterdir()))]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "lnmeasure" not in said.stderr, said.stderr


def test_the_schedules_readme_names_every_file():
    for file in FOLDER.iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in text("README.md")
