"""The examples of the documents."""

from __future__ import annotations

import doctest

import pytest

from conftest import REPOSITORY


@pytest.mark.parametrize("page, least", [("README.md", 4), ("docs/python.md", 20)])
def test_the_examples_of_a_page_print_what_it_says(page, least, tmp_path, monkeypatch):
    text = (REPOSITORY / page).read_text()
    blocks = [block for block in text.split("```")[1::2] if block.startswith("python\n>>>")]
    examples = "\n".join(block.removeprefix("python\n") for block in blocks)
    test = doctest.DocTestParser().get_doctest(examples, {"__name__": "__main__"}, page, page, 0)
    assert len(test.examples) >= least
    monkeypatch.chdir(tmp_path)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_the_example_of_the_package_runs(capsys):
    text = (REPOSITORY / "python/README.md").read_text()
    block = text.split("```python\n")[1].split("```")[0]
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out == "scenario: 1 point, 4 runs, 4 complete.\n"
