"""Results: the bytes of the command, tables without a copy, errors, progress."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import pathlib
import pickle
import re
import subprocess
import types
from decimal import Decimal

import numpy
import pandas
import polars
import pyarrow
import pytest

import longwire
from conftest import REPOSITORY, everything


def test_the_command_gives_the_same_bytes(scenario, grid, tmp_path):
    command = os.environ.get("LONGWIRE_COMMAND")
    if command is None:
        pytest.skip("LONGWIRE_COMMAND does not name the command")
    (tmp_path / "letter.txt").write_text("Nothing accepted is ever lost.\n" * 40)
    (tmp_path / "scenario.toml").write_text(
        "title = 'A file'\nprotocol = 'ltp/tuned'\nruns = 2\n[workload]\nfiles = ['letter.txt']\n[[channel]]\n"
        "between = ['tx', 'rx']\nprofile = 'cislunar'\n[sweep]\n'channel.ber' = [0, 1e-5]\n"
    )
    here = pathlib.Path.cwd()
    os.chdir(tmp_path)
    try:
        results = {
            ("run", "scenario.toml", "--sweep", "channel.delay-ms=5,1280"): longwire.run(
                "scenario.toml", grid={"channel.delay-ms": [5, 1280]}
            ),
            ("compare", "letter.txt", "--link", "lan", "--runs", "2", "--seed", "3"): longwire.compare(
                "lan", ["letter.txt"], runs=2, seed=3
            ),
            ("paper", "dtn-ax25", "--runs", "1"): longwire.paper("dtn-ax25", runs=1),
            (
                "model", "ax25", "--preset", "direwolf", "--rate", "1200", "--bytes", "900", "--txdelay", "300 ms",
            ): longwire.model("direwolf", rates=[1200], bytes=900, txdelay="300 ms"),
        }
        for words, result in results.items():
            directory = tmp_path / words[0]
            subprocess.run([command, *words, "--out", directory], check=True, capture_output=True)
            written = {path.name: path.read_bytes() for path in result.write(tmp_path / "ours" / words[0])}
            assert len(written) == 4
            for name, ours in written.items():
                theirs = (directory / name).read_bytes()
                if words[0] == "model" and name == "report.html":
                    # The command on the page has its words as they were given.
                    ours, theirs = (re.sub(b"longwire model ax25.*?<", b"<", page) for page in (ours, theirs))
                assert ours == theirs, (words, name)
    finally:
        os.chdir(here)


def test_a_dictionary_is_the_file_that_the_page_shows(scenario, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = longwire.run(scenario, runs=2, name="moon")
    assert result.command == "longwire run moon.toml --runs 2 --seed 1"
    text = re.search(r"<h3>the scenario</h3><pre><code>(.*?)</code>", result.html(), re.DOTALL)
    pathlib.Path("moon.toml").write_text(html.unescape(text[1]))
    assert everything(longwire.run("moon.toml", runs=2)) == everything(result)


def test_tables_have_the_cells_of_the_files(scenario, grid):
    result = longwire.run(scenario, grid=grid | {"protocol": ["ltp/tuned", "tcp/tuned"]}, runs=3)
    # A parameter whose name is that of another column has a prefix.
    names = {"param_protocol": "protocol"}
    for table, text in ((result.records, result.records_csv()), (result.runs, result.runs_csv())):
        rows = list(csv.reader(io.StringIO(text)))
        assert [names.get(name, name) for name in table.column_names] == rows[0]
        assert len(rows) - 1 == len(table) > 0
        for cells, row in zip(rows[1:], table.rows()):
            for cell, value in zip(cells, row.values()):
                expected = "" if value is None else str(value)
                assert cell == expected or Decimal(cell) == Decimal(expected)
    assert result.document()["records"][0]["mean"] == result.records["mean"].to_list()[0]
    assert len(result.ranking) == 0


def test_other_libraries_take_tables_without_a_copy(scenario, grid):
    result = longwire.run(scenario, grid=grid, runs=3)
    taken = pyarrow.table(result.runs)
    again = pyarrow.record_batch(result.runs)
    column = pyarrow.array(result.runs["transfer_s"])
    place = column.buffers()[1].address
    assert taken["transfer_s"].chunk(0).buffers()[1].address == place
    assert again.column("transfer_s").buffers()[1].address == place
    frame = polars.DataFrame(result.runs)
    assert frame["transfer_s"].to_numpy(allow_copy=False).ctypes.data == place
    assert frame.rows() == [tuple(row.values()) for row in result.runs.rows()]
    ours = result.runs["transfer_s"].to_list()
    assert taken["transfer_s"].to_pylist() == column.to_pylist() == ours
    assert list(result.runs.to_pandas()["transfer_s"]) == ours
    assert result.runs.to_polars().equals(frame) and result.runs.to_arrow().equals(taken)
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert list(pandas.DataFrame.from_arrow(result.runs)["transfer_s"]) == ours
    # The table outlives the result.
    del result
    assert taken["transfer_s"].to_pylist() == ours
    assert str(taken.schema.field("seed").type) == "uint64"


def test_a_ranking_is_a_table_too(tmp_path):
    letter = tmp_path / "letter.txt"
    letter.write_text("Nothing accepted is ever lost.\n" * 9)
    link = {"title": "A slow line", "rate-bps": 9600, "delay-ms": numpy.float64(40.0), "ber": 1e-6}
    result = longwire.compare(link, letter, runs=numpy.int64(2), name="slow")
    ranking = result.ranking.to_pandas()
    assert ranking["winner"].sum() == 1 and ranking["rank"].iloc[0] == 1
    document = result.document()["ranking"]
    assert [place["protocol"] for place in document] == list(ranking["protocol"])
    assert [place["transfer_s"] for place in document] == result.ranking["transfer_s"].to_list()
    assert "--link slow.toml" in result.command and "longwire compare" in result.command


def test_a_scenario_takes_the_values_of_numpy_and_other_mappings_and_no_sets(scenario):
    rates = numpy.logspace(-6, -5, 2)
    plain = longwire.run(scenario | {"sweep": {"channel.ber": rates.tolist()}}, runs=1)
    arrays = longwire.run(types.MappingProxyType(scenario) | {"sweep": types.MappingProxyType({"channel.ber": rates})}, runs=1)
    assert arrays.json() == plain.json()
    long = longwire.run(scenario | {"sweep": {"channel.ber": [numpy.longdouble(rate) for rate in rates]}}, runs=1)
    assert long.json() == plain.json()
    for value in [{0.0, 1e-6}, frozenset({0.0}), b"\x00\x01", bytearray(2), memoryview(b"\x00\x01"), [numpy.clongdouble(1e-6)]]:
        with pytest.raises(TypeError, match="is no value of a scenario"):
            longwire.run(scenario | {"sweep": {"channel.ber": value}}, runs=1)


def test_a_notebook_shows_the_page(scenario):
    result = longwire.run(scenario, runs=1)
    shown = result._repr_html_()
    page = html.unescape(re.fullmatch(r'<iframe srcdoc="([^"]*)" sandbox="allow-downloads".*</iframe>', shown, re.DOTALL)[1])
    # The unescaped page has entities of its own, which stay.
    assert shown.count("<iframe") == 1 and page == html.unescape(result.html().replace("&", "&amp;"))
    assert "<svg" in page and "<script" not in page


def test_captures_are_written_where_they_are_asked_for(scenario, tmp_path):
    result = longwire.run(scenario, grid={"channel.ber": [0, 1e-6]}, runs=1, traces=True)
    written = result.write_traces(tmp_path)
    assert {path.parent.name for path in written} == {"ber-0", "ber-1e-6"}
    assert any(path.suffix == ".pcapng" for path in written) and all(path.exists() for path in written)
    assert longwire.run(scenario, runs=1).write_traces(tmp_path) == []


def test_errors_have_a_hint_and_survive_a_journey(scenario):
    cases = [
        (lambda: longwire.run("nowhere.toml"), "cannot read the scenario nowhere.toml", "sample scenarios"),
        (lambda: longwire.run(scenario | {"protcol": "ltp"}), "unknown field `protcol`", "did you mean `protocol`?"),
        (lambda: longwire.run(scenario, runs=0), "no runs would be made", "at least 1"),
        (lambda: longwire.run(scenario, grid={"channel.ber": 1e-6}), "is not a list", "[first, second]"),
        (lambda: longwire.compare("cislnar", __file__), "no such link profile: `cislnar`", "did you mean `cislunar`?"),
        (lambda: longwire.compare("lan", __file__, receivers=0), "0 receivers", "from 1 to"),
        (lambda: longwire.compare("lan", "nowhere"), "cannot read nowhere", "check the path"),
        (lambda: longwire.model("ronan"), "no such preset: `ronan`", "ronan-2011"),
        (lambda: longwire.model(persistence=0.0), "invalid channel", "every parameter"),
        (lambda: longwire.model(slott="1s"), "unknown field `slott`", "did you mean `slot`?"),
        (lambda: longwire.model(slot="fast"), "expected a duration", '"5 s"'),
        (lambda: longwire.model(rates=[0]), "0 bit/s", "from 1 to"),
        (lambda: longwire.sweep(scenario, {"channel.ber": [0]}, on=5), "a int computes no tasks", "dask"),
    ]
    for call, what, hint in cases:
        with pytest.raises(longwire.Error) as caught:
            call()
        error = caught.value
        assert what in error.what and hint in error.hint, (error.what, error.hint)
        assert str(error) == f"{error.what}\nhint: {error.hint}"
        travelled = pickle.loads(pickle.dumps(error))
        assert (travelled.what, travelled.hint) == (error.what, error.hint)
    with pytest.raises(TypeError, match="complex is no value of a scenario"):
        longwire.run(scenario | {"runs": 1j})
    circle: list = []
    circle.append(circle)
    with pytest.raises(TypeError, match="in one another"):
        longwire.run(scenario | {"nodes": circle})


def test_progress_is_counted_and_what_it_raises_ends_the_computation(scenario, capsys):
    counted = []
    longwire.run(scenario, runs=5, progress=lambda done, total: counted.append((done, total)))
    assert counted[-1] == (5, 5) and counted == sorted(counted)
    longwire.run(scenario, runs=5, progress=True)
    assert "5 of 5 runs, 100 %" in capsys.readouterr().err

    class Enough(Exception):
        pass

    def enough(done, total):
        raise Enough

    with pytest.raises(Enough):
        longwire.run(scenario, runs=1_000_000, progress=enough)


def test_the_samples_of_the_repository_run():
    result = longwire.run(REPOSITORY / "scenarios/positions.toml", runs=1)
    assert result.experiment == "positions" and len(result.runs) > 0
    assert json.loads(result.json())["seed"] == result.seed == 1
