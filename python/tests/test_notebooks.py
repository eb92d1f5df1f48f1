"""The notebooks: each paper has one, and it runs."""

from __future__ import annotations

import nbclient
import nbformat
import pytest

import longwire
from conftest import REPOSITORY

FOLDER = REPOSITORY / "python/notebooks"


def test_every_paper_has_a_notebook_without_output():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(longwire.papers())
    for path in FOLDER.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert code and all(cell.outputs == [] and cell.execution_count is None for cell in code)


@pytest.mark.parametrize("paper", sorted(longwire.papers()))
def test_a_notebook_shows_the_page_of_its_paper(paper, monkeypatch, tmp_path):
    monkeypatch.setenv("LONGWIRE_RUNS", "1")
    monkeypatch.setenv("LONGWIRE_THIN", "1")
    notebook = nbformat.read(FOLDER / f"{paper}.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [
        output.data["text/html"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "text/html" in output.get("data", {})
    ]
    assert any("<iframe" in html and f"longwire paper {paper} " in html for html in shown)
    # The published figures beside ours, as a table.
    assert any("<table" in html and "<iframe" not in html for html in shown)
