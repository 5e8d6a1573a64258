"""Facts in a build, on tiny sites: measured once, drawn from the cache, held against the record, never in Sphinx's process."""

import json
import subprocess
import sys

import pytest

from _ext.facts import cache, record
from _ext.facts.__main__ import RECORDS, main
from tiny import make_site

PAGE = "# clone\n\nText.\n\n```{facts} clone\n```\n"
CONF = """
extensions = [*extensions] + [name for name in ["_ext.facts.extension"] if name not in extensions]
"""
VERSION = cache.installed_version()


def build(folder, pages=None, options=("-W", "-q"), **environment):
    return make_site(folder, pages or {"clone.md": PAGE}, conf=CONF, options=options, environment=environment)


def put_record(folder, change=lambda entry: None, version=VERSION, names=("clone", "view")):
    """Lay a record with entries of the committed one, the one for clone changed, beside the tiny site."""
    entries = record.load(record.path_of(RECORDS, VERSION))["operations"]
    entries = json.loads(json.dumps({name: entries[name] for name in names}))
    change(entries["clone"])
    record.save(record.path_of(folder / "docs/_facts", version), {"torch": version, "operations": entries, "views": {}})


def kept(folder):
    return folder / f"docs/_build/.facts/torch-{VERSION}.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A site with two boxes and the table, built once; tests may build it again."""
    folder = tmp_path_factory.mktemp("facts")
    put_record(folder)
    pages = {"clone.md": PAGE, "view.md": PAGE.replace("clone", "view"), "table.md": "# All\n\n```{facts-table}\n```\n"}
    status, printed, site = build(folder, pages)
    assert status == 0, printed
    return folder, pages, site


def test_box_and_table_are_on_their_pages_with_their_files(built):
    _, _, site = built
    clone, table = (site / "clone.html").read_text(), (site / "table.html").read_text()
    assert f"torch {VERSION}, CPU" in clone and "x.clone()" in clone
    assert 'href="clone.html#facts-clone"' in table and 'href="view.html#facts-view"' in table
    assert 'id="facts-clone"' in clone
    assert "facts.css" in clone and "facts.js" not in clone
    assert "facts.css" in table and "facts.js" in table
    assert "facts.css" not in (site / "index.html").read_text()
    assert (site / "_static/facts.css").exists() and (site / "_static/facts.js").exists()


def test_a_warm_build_measures_nothing(built):
    folder, pages, _ = built
    before = kept(folder).stat().st_mtime_ns
    status, printed, _ = build(folder, {**pages, "clone.md": PAGE + "\nOne more line.\n"}, options=("-W",))
    assert status == 0 and "measuring facts" not in printed
    assert kept(folder).stat().st_mtime_ns == before


def test_a_build_whose_samples_changed_measures_those_alone(built):
    folder, pages, _ = built
    cached = json.loads(kept(folder).read_text())
    view = cached["operations"]["view"]
    cached["operations"]["clone"]["sample"] = "another"
    cached["operations"]["view"]["entry"]["mark"] = "not measured again"
    kept(folder).write_text(json.dumps(cached))
    status, printed, _ = build(folder, pages, options=("-W",))
    assert "measuring facts: 1 operation" in printed
    assert json.loads(kept(folder).read_text())["operations"]["view"]["entry"]["mark"] == "not measured again"
    assert status == 0
    view["entry"].pop("mark", None)


def test_a_changed_fact_fails_the_build_and_says_how_to_accept_it(tmp_path):
    def change(entry):
        entry["facts"]["storage"] = "view"
        entry["facts"]["vmap"] = "differs from a loop"

    put_record(tmp_path, change)
    status, printed, site = build(tmp_path)
    assert status != 0
    assert f"2 are not as recorded for torch {VERSION}" in printed
    assert "clone · x.clone() · storage: recorded view, measured copy  (clone)" in printed
    assert "clone · x.clone() · vmap: recorded differs from a loop, measured works" in printed
    assert 'make facts O="clone"' in printed
    assert "Traceback" not in printed
    assert not (site / "clone.html").exists()


def test_the_accepting_command_makes_the_build_pass(tmp_path, capsys):
    put_record(tmp_path, lambda entry: entry["facts"].update(storage="view"))
    assert build(tmp_path)[0] != 0
    assert main(["--records", str(tmp_path / "docs/_facts"), "check", "clone"]) == 1
    assert main(["--records", str(tmp_path / "docs/_facts"), "measure", "clone"]) == 0
    assert "storage: recorded view, measured copy" in capsys.readouterr().out
    status, printed, site = build(tmp_path)
    assert status == 0 and (site / "clone.html").exists(), printed


def test_an_operation_that_the_record_lacks_fails_the_build(tmp_path):
    put_record(tmp_path)
    status, printed, _ = build(tmp_path, {"sort.md": "# sort\n\n```{facts} sort\n```\n"})
    assert status != 0 and "sort: recorded nothing, measured an operation  (sort)" in printed


def test_a_torch_without_a_record_measures_says_so_and_passes(tmp_path):
    put_record(tmp_path, version="1.0.0")
    status, printed, site = build(tmp_path)
    assert status == 0, printed
    assert "There is no record of this torch version" in (site / "clone.html").read_text()


def test_an_unknown_operation_is_named_with_its_place(tmp_path):
    status, printed, _ = build(tmp_path, {"page.md": "# page\n\nText.\n\n```{facts} clonee\n```\n"})
    assert status != 0 and "no facts are measured for 'clonee'" in printed and "page.md:5" in printed


def test_a_record_that_is_broken_is_named(tmp_path):
    put_record(tmp_path)
    record.path_of(tmp_path / "docs/_facts", VERSION).write_text("{")
    status, printed, _ = build(tmp_path)
    assert status != 0 and f"torch-{VERSION}.json is not a record of facts" in printed and "Traceback" not in printed


def test_a_cache_that_was_cut_short_is_measured_again(tmp_path):
    put_record(tmp_path)
    kept(tmp_path).parent.mkdir(parents=True)
    kept(tmp_path).write_text('{"code": ')
    assert build(tmp_path)[0] == 0


def test_a_page_is_drawn_again_when_the_record_comes(tmp_path):
    (tmp_path / "docs").mkdir()
    assert "no record" in (build(tmp_path)[2] / "clone.html").read_text()
    put_record(tmp_path)
    assert "no record" not in (build(tmp_path)[2] / "clone.html").read_text()


def test_errors_in_a_box_lead_to_their_page(tmp_path):
    put_record(tmp_path)
    from _ext.errors import find

    stem = find(
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
    )
    assert stem
    page = (RECORDS.parent / "errors" / f"{stem}.md").read_text()
    front = page.split("---")[1]
    lone = f"---{front}---\n\n# {stem}\n\n" + page.split("# ", 1)[1].split("\n", 1)[1]
    status, printed, site = build(
        tmp_path, {"view.md": PAGE.replace("clone", "view"), f"errors/{stem}.md": lone}, options=("-q",)
    )
    assert status == 0, printed
    assert f'href="errors/{stem}.html"' in (site / "view.html").read_text()


def test_commands_name_their_mistakes(capsys, tmp_path):
    assert main(["check", "clonee"]) == 2
    assert "no samples for clonee" in capsys.readouterr().err
    assert main(["--records", str(tmp_path), "diff", "1.0", "2.0"]) == 2
    assert "no record for torch 1.0, 2.0" in capsys.readouterr().err
    assert main(["list"]) == 0 and "repeat_interleave" in capsys.readouterr().out


def test_two_measurements_are_equal(tmp_path):
    names = ["repeat", "unique", "backward", "max"]
    for folder in ("one", "other"):
        assert main(["--records", str(tmp_path / folder), "measure", *names]) == 0
    one, other = (record.path_of(tmp_path / folder, VERSION).read_bytes() for folder in ("one", "other"))
    assert one == other


def test_another_python_measures_again(monkeypatch):
    before = cache.code_digest()  # a TypeError is worded by Python
    monkeypatch.setattr("platform.python_version", lambda: "3.99.0")
    assert cache.code_digest() != before


def test_the_cache_knows_all_code_that_measures():
    """A change in a module that a worker imports must not leave old answers in the cache."""
    code = (
        "import sys, _ext.facts.targets, _ext.facts.views, _ext.facts.gather\n"
        "print(*(name.rpartition('.')[2] for name in sys.modules if name.startswith('_ext.facts.')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) - {"operations"} == set(cache.MEASURING)  # a sample has a digest of its own
