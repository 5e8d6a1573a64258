"""The runner: whatever a sample does to its process costs that sample's fact, and nothing else."""

import multiprocessing
import os
import sys
import time

import pytest

from _ext.facts.run import Failure, Limits, MeasuringFailed, measure

LINUX = sys.platform.startswith("linux")


@pytest.fixture(params=["fork", "spawn"], autouse=True)
def start(request, monkeypatch):
    """Every test runs with forked and with spawned workers."""
    if request.param == "fork" and not LINUX:
        pytest.skip("forking is used on Linux alone")
    if request.param == "spawn":
        monkeypatch.setenv("FACTS_NO_FORK", "1")
    here = os.path.dirname(__file__)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([here, os.path.join(here, "..", "docs"), os.environ.get("PYTHONPATH", "")])
    )
    # Not the fork server: it was started with other environment variables, and these tests change them.
    return {"context": multiprocessing.get_context("spawn"), "opener": "facts_targets:open_target"}


@pytest.fixture(autouse=True)
def light_hub(monkeypatch):
    """The hub of these tests imports no torch."""
    monkeypatch.setenv("FACTS_PRELOAD", "")


def answers(start, *specs, **options):
    found = list(measure(list(specs), workers=2, **{**start, **options}))
    return {(answer.spec, answer.step[0]): answer.value for answer in found}


def test_answers_come_back_in_the_order_of_steps(start):
    spec = ("a", "fine", "also_fine", "fine")
    found = list(measure([spec], **start))
    assert [answer.step for answer in found] == [("fine",), ("also_fine",), ("fine",)]
    assert found[0].value["pid"] != os.getpid()
    assert found[1].value == "yes"


@pytest.mark.parametrize(
    "step, text",
    [
        ("crashes", "kills the process (SIGSEGV)"),
        ("leaves", "ends the process (exit code 3)"),
        ("raises", "not measured: ValueError: a fault of the probe"),
    ],
)
def test_a_step_that_takes_its_process_along_is_told_and_the_rest_goes_on(start, step, text):
    if not LINUX and step == "crashes":
        pytest.skip("a signal ends a process on Linux")
    one, other = ("one", "fine", step, "also_fine"), ("other", "also_fine")
    found = answers(start, one, other)
    assert found[one, step] == Failure(text)
    assert found[one, "also_fine"] == found[other, "also_fine"] == "yes"
    assert "pid" in found[one, "fine"]


def test_steps_that_never_end_cost_their_limit_and_no_more(start):
    spec = ("a", "hangs", "also_fine", "loops", "fine")
    began = time.monotonic()
    found = answers(start, spec, limits=Limits(seconds=1.0))
    assert found[spec, "hangs"] == found[spec, "loops"] == Failure("does not end within 1 s")
    assert found[spec, "also_fine"] == "yes"
    assert time.monotonic() - began < 30


@pytest.mark.skipif(not LINUX, reason="memory is limited on Linux alone")
@pytest.mark.parametrize("step", ["eats", "eats_in_torch"])
def test_a_step_that_wants_all_memory_is_told_so(start, step):
    spec = ("a", step, "also_fine")
    found = answers(start, spec, limits=Limits(memory=1 << 30))
    assert found[spec, step] == Failure("needs more than 1 GiB of memory")
    assert found[spec, "also_fine"] == "yes"


def one_worker(start, *specs, **options):
    """Ask all of these of one worker, one after the other."""
    found = list(measure(list(specs), workers=1, **{**start, **options}))
    assert len(found) == len({(answer.spec, answer.step) for answer in found}), "asked again, and answered twice"
    return {(answer.spec[0], answer.step[0]): answer.value for answer in found}


@pytest.mark.skipif(not LINUX, reason="memory is limited on Linux alone")
def test_memory_that_a_target_keeps_is_not_the_next_ones(start):
    found = one_worker(start, ("one", "keeps"), ("other", "wants"), limits=Limits(memory=1 << 30))
    assert found == {("one", "keeps"): "kept", ("other", "wants"): 700 << 20}


@pytest.mark.skipif(not LINUX, reason="a signal ends a process on Linux")
@pytest.mark.parametrize("step", ["dies_later", "dies_when_it_goes", "hangs_the_next"])
def test_what_a_target_leaves_behind_is_not_blamed_on_the_next(start, step):
    others = [(name, "takes_a_second", "also_fine") for name in "ab"]
    found = one_worker(start, ("one", step), *others, limits=Limits(seconds=3))
    assert found.pop(("one", step)) == "alive"
    assert set(found.values()) == {"yes"} and len(found) == 4


@pytest.mark.skipif(not LINUX, reason="a signal ends a process on Linux")
def test_a_target_that_dies_by_itself_is_asked_again_once(start):
    began = time.monotonic()
    found = one_worker(start, ("one", "also_fine"), ("other", "crashes", "hangs", "also_fine"), limits=Limits(seconds=1))
    assert found["other", "crashes"] == Failure("kills the process (SIGSEGV)")
    assert found["other", "hangs"] == Failure("does not end within 1 s")
    assert found["one", "also_fine"] == found["other", "also_fine"] == "yes"
    assert time.monotonic() - began < 30


def test_each_target_finds_the_switches_of_torch_as_they_come(start):
    found = one_worker(
        {**start, "opener": "facts_targets:open_afresh"}, ("one", "looks", "switches"), ("other", "looks")
    )
    assert found["one", "switches"] == "switched"
    assert found["one", "looks"] == found["other", "looks"] == [
        "torch.float32", "cpu", True, False, False, 1, "tensor(0.3333)", True, 0,
    ]  # fmt: skip


@pytest.mark.skipif(not LINUX, reason="seen on Linux")
def test_the_call_that_kills_its_process_on_this_torch(start):
    spec = ("a", "crashes_for_real", "also_fine")
    found = answers(start, spec)
    assert found[spec, "crashes_for_real"] == Failure("kills the process (SIGSEGV)")
    assert found[spec, "also_fine"] == "yes"


def test_several_deaths_in_a_row(start):
    spec = ("a", "crashes", "leaves", "crashes", "also_fine")
    found = list(measure([spec], **start))
    assert [answer.value if isinstance(answer.value, str) else answer.value.text[:5] for answer in found] == [
        "kills",
        "ends ",
        "kills",
        "yes",
    ]


def test_a_target_that_cannot_be_opened(start):
    bad, good = ("unknown",), ("a", "also_fine")
    found = answers(start, bad, good)
    assert found[bad, "open"].text.startswith("KeyError")
    assert found[good, "also_fine"] == "yes"


def test_what_a_worker_prints_is_not_heard(start, capfd):
    spec = ("a", "prints")
    assert answers(start, spec)[spec, "prints"] == "printed"
    heard = capfd.readouterr()
    assert "a line" not in heard.out + heard.err


def test_nothing_to_measure_starts_nothing():
    assert list(measure([], context=object())) == []


def test_a_hub_that_dies_is_an_error_and_no_hang(start, monkeypatch):
    def killing(*arguments, **options):
        process = start["context"].Process(target=os._exit, args=(7,))
        return process

    class Context:
        Pipe = staticmethod(start["context"].Pipe)
        Process = staticmethod(killing)

    with pytest.raises(MeasuringFailed, match="exit code 7"):
        list(measure([("a", "fine")], context=Context(), opener=start["opener"]))


def test_a_reader_that_stops_early_leaves_nothing_running(start):
    reading = measure([("a", "fine", "hangs")], **start)
    first = next(reading)
    reading.close()
    worker = first.value["pid"]
    for _ in range(100):
        if not alive(worker):
            return
        time.sleep(0.05)
    pytest.fail(f"worker {worker} is still running")


def alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    if LINUX:
        try:
            return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    return True


@pytest.mark.skipif(not LINUX, reason="forking is used on Linux alone")
def test_the_hub_has_one_thread_after_its_imports(start):
    import subprocess

    code = "import os; from _ext.facts import processes; processes.preload(); print(len(os.listdir('/proc/self/task')))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "FACTS_PRELOAD": "all"},
    )
    assert ran.stdout.strip() == "1", ran.stderr
