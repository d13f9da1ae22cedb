"""Snippets, commands and links of the README and docs/ run or resolve, except those listed here with a reason."""

from __future__ import annotations

import importlib
import json
import re
import runpy
import shutil
import warnings
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from recompute.dialects.context import make_context
from recompute.mlir_io.parser import parse_module
from recompute.support.operations import name_of as name_of_operation
from recompute.test.benchmark_scripts import script
from recompute.test.documentation import (
    PAGES,
    ROOT,
    Block,
    anchors,
    blocks,
    headings,
    inline_commands,
    links,
    links_with_file_names,
    name_of,
    prose,
    training_step,
    words,
)
from recompute.test.run_lines.execute import run_command
from recompute.test.run_lines.script import Command
from recompute.test.unit.tools.plan.test_planned_step import STEP as FIVE_VALUES

BLOCKS = [block for page in PAGES for block in blocks(page)]
LANGUAGES = {"python", "sh", "console", "mlir", "json", "text"}
RUN_BY_OTHER_TESTS = {
    ("README.md", "python"): "test_jax_page.py",
    ("docs/mindspore_calls.md", "python"): "test_coming_from.py",
    ("docs/paddle_calls.md", "python"): "frontends/jax/paddle/test_paddle_examples.py",
    ("docs/embedding.md", "python"): "test_embedding.py",
    ("docs/embedding.md", "sh"): "test_embedding.py",
    ("docs/foreign_dialects.md", "python"): "rules/test_foreign.py",
    ("docs/foreign_dialects.md", "mlir"): "rules/test_foreign.py",
    ("docs/foreign_dialects.md", "sh"): "rules/test_foreign.py",
    ("docs/jax.md", "python"): "test_jax_page.py",
    ("docs/jax_compilation.md", "python"): "test_jax_page.py",
    ("docs/jax_report.md", "python"): "test_jax_page.py",
    ("docs/jax_selection.md", "python"): "test_jax_page.py",
    ("docs/plugins.md", "mlir"): "test_plugins.py",
    ("docs/plugins.md", "python"): "test_plugins.py",
    ("docs/plugins.md", "sh"): "test_plugins.py",
    ("docs/recipes.md", "python"): "test_recipes.py",
    ("docs/torch.md", "python"): "frontends/torch/test_torch_page.py",
}
NOT_RUN = {
    "git ": "changes the checkout",
    "pip install ": "needs a registry; test_packaging.py installs the wheel",
    "python -m pip install ": "needs a registry; test_packaging.py installs the wheel",
    "python -m venv ": "test_packaging.py makes one",
    "python -m pytest ": "this suite",
    "python -m build": "test_packaging.py runs it",
    "pre-commit ": "writes hooks into the checkout",
    "make ": "minutes; the targets are compared with the Makefile",
    "python -m recompute.benchmarks.": "minutes to hours; the module and its flags are compared",
    "python -m recompute.test.": "minutes to hours; the module and its flags are compared",
    "python docs/": "writes into the checkout; test_readme.py compares the results",
}
"""Beginnings of commands, and why a test does not run them."""
FRAGMENTS = {
    "%t = recompute.token %ct": "a part of a function",
    "%x1, %key1 = stablehlo.optimization_barrier": "a part of a function",
}
"""First lines of MLIR that is not a module; so is everything with an ellipsis."""
SCOPES = {"README.md": "block", "docs/planning.md": "layer", "docs/segment_budgets.md": "layer"}
"""Names of the layers in the step that the commands of a page read."""


def ids(values: list[Any]) -> list[str]:
    return [str(value) for value in values]


def of_language(*languages: str) -> list[Block]:
    """Return the blocks in these languages that no other test runs."""
    return [
        block
        for block in BLOCKS
        if block.language in languages and (block.page, block.language) not in RUN_BY_OTHER_TESTS
    ]


def test_each_block_has_a_language() -> None:
    assert {str(block): block.language for block in BLOCKS if block.language not in LANGUAGES} == {}


def test_excluded_blocks_are_run_by_other_tests() -> None:
    pages = {(block.page, block.language) for block in BLOCKS}
    for (page, language), files in RUN_BY_OTHER_TESTS.items():
        assert (page, language) in pages, f"{page} has no block of {language}"
        assert Path(page).stem in (ROOT / "test" / "unit" / files).read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty current folder, in which a reader's commands run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepare(page: str, folder: Path) -> None:
    """Write the files that the commands of a page read."""
    step = training_step(SCOPES.get(page, "block"))
    (folder / "step.mlir").write_text(step)
    (folder / "checkpointed.mlir").write_text(step)
    (folder / "bare.mlir").write_text(re.sub(r" loc\(.*\)", "", step))
    planner_graphs: Any = script("solvers.planner_graphs")
    (folder / "step.json").write_text(json.dumps(planner_graphs.unet(depth=2, blocks=1).finished()))
    (folder / "examples").symlink_to(ROOT / "examples")


def execute(command: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command line, run in this process; searches are kept brief.

    The exit code of a pipe is the first that is not 0."""
    errors, failed, output = BytesIO(), 0, b""
    for part in command.split(" | "):
        brief = ("--effort", "brief") if part.startswith("recompute-plan ") and "--help" not in part else ()
        code, output = run_command(Command((*words(part), *brief), (), False), output, errors)
        failed = failed or code
    return failed, output.decode(), errors.getvalue().decode()


def test_step_from_jax_equals_the_checkpointed_step(folder: Path) -> None:
    (block,) = [block for block in of_language("python") if block.page == "docs/command_line.md"]
    (folder / "make_step.py").write_text(block.text)
    runpy.run_path("make_step.py")
    assert execute("recompute-check checkpointed.mlir step.mlir")[0] == 0


def reason_not_run(command: str) -> str | None:
    return next((reason for start, reason in NOT_RUN.items() if command.startswith(start)), None)


@pytest.mark.parametrize("block", of_language("sh"), ids=str)
def test_page_commands_succeed(block: Block, folder: Path) -> None:
    prepare(block.page, folder)
    if "theirs.txt" in block.text:
        assert execute("recompute-plan step.json --budget 0.6 -q --sequence theirs.txt")[0] == 0
    for command in block.commands():
        if reason_not_run(command):
            check_arguments(command)
        else:
            code, _, errors = execute(command)
            assert code == 0, f"{block}: {command}\n{errors}"


@pytest.mark.parametrize("block", of_language("console"), ids=str)
def test_page_sessions_have_the_stated_output(block: Block, folder: Path) -> None:
    """Each line after a `$` runs; the lines below it are the beginning or a part of its output."""
    prepare(block.page, folder)
    (folder / "step.mlir").write_text(FIVE_VALUES)
    if block.page == "docs/tutorial_mlir.md":  # its sessions go on where the one before ended
        assert execute("recompute-opt step.mlir -p recompute --print-debuginfo -o less.mlir")[0] == 0
    for session in block.text.removeprefix("$ ").split("\n$ "):
        command, *expected = session.rstrip("\n").split("\n")
        _, output, errors = execute(command)
        printed = (output + errors).splitlines()
        for line in expected:
            assert line in printed, f"{block}: {command}\n{output}{errors}"
            printed = printed[printed.index(line) + 1 :]


TUTORIALS = {"docs/tutorial_jax.md": "jax", "docs/tutorial_torch.md": "torch"}
"""Pages whose snippets run one after the other, each with the names of those before it, and what they import."""


@pytest.mark.slow("tutorial_jax")
@pytest.mark.parametrize("page", TUTORIALS)
def test_page_tutorials_run(page: str, folder: Path) -> None:
    pytest.importorskip(TUTORIALS[page], reason="the tutorial imports it")
    text = "\n".join(block.text for block in BLOCKS if (block.page, block.language) == (page, "python"))
    (folder / "tutorial.py").write_text(text)
    assert "chosen" in runpy.run_path("tutorial.py")


def test_readme_lines_for_pytorch_run(folder: Path) -> None:
    torch: Any = pytest.importorskip("torch", reason="the lines compile a model of PyTorch")
    (block,) = [block for block in blocks(ROOT / "README.md") if "import recompute.torch" in block.text]
    (folder / "snippet.py").write_text(block.text)
    nn = torch.nn
    layers = [layer for _ in range(6) for layer in (nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(0), nn.Linear(256, 1))
    names = runpy.run_path("snippet.py", init_globals={"model": model, "batch": torch.randn(256, 32)})
    (graph,) = names["model"].report().graphs
    assert graph.peak_bytes < graph.plain_bytes


SNIPPETS = [block for block in of_language("python") if block.page not in TUTORIALS]


@pytest.mark.parametrize("block", SNIPPETS, ids=str)
def test_python_snippets_run(block: Block, folder: Path) -> None:
    """Each snippet runs with the names that the page assumes, and so does the step that it makes."""
    jax = pytest.importorskip("jax", reason="the snippets call recompute.jax")
    (folder / "snippet.py").write_text(block.text)
    given = {"recompute": __import__("recompute"), "text": training_step("layer"), "train_step": train_step}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # offloading has no effect on CPU
        names = runpy.run_path("snippet.py", init_globals=given)
        if "step" in names:
            loss, _ = names["step"]([jax.numpy.full((16, 16), 0.1)] * 4, jax.numpy.ones((64, 16)))
            assert loss.shape == ()


def test_marking_pass_marks_forward_cosines(folder: Path) -> None:
    (block,) = [block for block in SNIPPETS if block.page == "docs/extending.md" and "MarkCosinesPass" in block.text]
    (folder / "pass.py").write_text(block.text)
    module = parse_module(training_step("layer"), "step.mlir")
    runpy.run_path("pass.py")["MarkCosinesPass"]().apply(make_context(), module)
    marked = [op for op in module.walk() if "recompute.recompute" in op.attributes]
    forward = [op for op in module.walk() if name_of_operation(op) == "stablehlo.cosine" and "jvp(" in str(op.location)]
    assert marked == [op for op in forward if "transpose(" not in str(op.location)] != []


def test_barrier_pass_inserts_a_barrier_after_each_named_operation(folder: Path) -> None:
    (block,) = [block for block in SNIPPETS if block.page == "docs/extending.md" and "BarrierPass" in block.text]
    (folder / "pass.py").write_text(block.text)
    module = parse_module(training_step("layer"), "step.mlir")
    runpy.run_path("pass.py")["BarrierPass"]("stablehlo.tanh").apply(make_context(), module)
    module.verify()
    tanhs = [op for op in module.walk() if name_of_operation(op) == "stablehlo.tanh"]
    readers = [[use.operation.name for use in op.results[0].uses] for op in tanhs]
    assert readers == [["stablehlo.optimization_barrier"]] * len(tanhs) != []


def train_step(weights: Any, x: Any) -> Any:
    """Return the loss and the gradients of a model whose layers and head are scopes."""
    jax: Any = importlib.import_module("jax")
    jnp = jax.numpy

    def loss(weights: Any, x: Any) -> Any:
        for index, weight in enumerate(weights):
            with jax.named_scope(f"layer{index}"):
                x = x + jnp.tanh(jnp.sin(x @ weight)) @ weight.T
        with jax.named_scope("head"):
            return jnp.mean(jnp.exp(x) ** 2)

    untyped_jax: Any = jax
    return untyped_jax.value_and_grad(loss)(weights, x)


@pytest.mark.parametrize("block", of_language("mlir"), ids=str)
def test_mlir_blocks_parse_and_verify(block: Block) -> None:
    first = block.text.splitlines()[0].strip()
    if "…" not in block.text and not first.startswith(tuple(FRAGMENTS)):
        parse_module(block.text, "block.mlir").verify()


@pytest.mark.parametrize("block", of_language("json"), ids=str)
def test_json_blocks_parse(block: Block) -> None:
    assert json.loads(block.text.replace("…", ""))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_sentences_have_valid_arguments(page: Path, folder: Path) -> None:
    prepare(name_of(page), folder)
    for command in inline_commands(page):
        tool, *arguments = words(command)
        whole = arguments and arguments[0] == "step.mlir" and arguments[-1] not in ("--sweep", "--fit")
        if tool.startswith("recompute-") and whole and "plan=plan.json" not in command:
            code, _, errors = execute(f"{command} -o out" if tool == "recompute-opt" else command)
            assert code == 0, f"{command}\n{errors}"
        else:
            check_arguments(command)


def check_arguments(command: str) -> None:
    """Assert that the make targets, scripts, modules and flags that a command names exist."""
    match words(command):
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), command
        case ["python", "-m", ("pip" | "venv" | "pytest" | "build"), *_] | ["pip", *_] | ["git", *_]:
            pass
        case ["python", "-m", module, *arguments]:
            assert flags(arguments) <= flags_of_module(module), command
        case ["python", path, *arguments]:
            assert (ROOT / path).exists(), command
            assert flags(arguments) <= flags_in((ROOT / path).read_text()), command
        case [tool, *arguments]:
            assert shutil.which(tool) or tool.startswith("recompute-"), command
            assert flags(arguments) <= flags_in(execute(f"{tool} --help")[1]), command
        case _:
            raise AssertionError(command)


def flags(arguments: list[str]) -> set[str]:
    return {argument for argument in arguments if argument.startswith("--")}


def flags_in(text: str) -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]*", text))


def flags_of_module(module: str) -> set[str]:
    path = ROOT.joinpath(*module.split(".")[1:])
    files = [path.with_suffix(".py")] if path.with_suffix(".py").exists() else sorted(path.glob("*.py"))
    assert files, f"there is no module {module}"
    return flags_in("".join(file.read_text() for file in files))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_sections_of_a_page_have_different_headings(page: Path) -> None:
    assert repeated_headings(headings(page)) == []


def repeated_headings(listed: list[tuple[int, str]]) -> list[str]:
    """Return the headings that occur twice under the same parents, from pairs of a level and a heading."""
    sections, path = list[tuple[tuple[int, str], ...]](), list[tuple[int, str]]()
    for level, heading in listed:
        path = [*(parent for parent in path if parent[0] < level), (level, heading)]
        sections.append(tuple(path))
    return [section[-1][1] for section, count in Counter(sections).items() if count > 1]


def test_equal_headings_are_found_under_the_same_parents_only() -> None:
    allowed = [(1, "Page"), (2, "JAX"), (3, "Options"), (2, "PyTorch"), (3, "Options")]
    assert repeated_headings(allowed) == []
    assert repeated_headings([*allowed, (3, "Options")]) == ["Options"]
    assert repeated_headings([*allowed, (2, "JAX")]) == ["JAX"]


def test_file_names_as_link_texts_match_their_targets() -> None:
    """A link text that is a file name is the end of the target's path."""
    pages = [*PAGES, *sorted((ROOT / "benchmarks").glob("*/**/README.md"))]
    named = [(name_of(page), *link) for page in pages for link in links_with_file_names(page)]
    assert len(named) > 100
    assert [link for link in named if not f"/{link[2]}".endswith(f"/{link[1]}")] == []


FILE = re.compile(r"`([\w./-]+\.(?:py|mlir|json|yml|toml|ipynb|gz|cff))`")
FOLDER = re.compile(r"`([\w.-]+/[\w./-]*)`")
OF_A_READER = {
    "acme_passes.py",
    "acme-save.mlir",
    "lit.cfg.py",
    "costs.json",
    "less.mlir",
    "02_after_recompute-mark.mlir",
    "acme.mlir",
    "acme_rules.py",
    "step.mlir",
    "plan.json",
    "site/",
}
"""Files that a page has its reader write."""


def tracked_paths() -> set[str]:
    """Files and folders of the checkout, with slashes, without build outputs; a folder ends in one."""
    paths = [
        path
        for path in ROOT.rglob("*")
        if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
        and path.relative_to(ROOT).parts[0] not in ("build", "site", "dist")
    ]
    return {path.relative_to(ROOT).as_posix() + "/" * path.is_dir() for path in paths}


def test_files_that_a_page_names_exist() -> None:
    """Each file that a page names exists; the beginning of its path may be omitted."""
    paths = {f"/{path}" for path in tracked_paths()}
    ends = {path[index:] for path in paths for index, letter in enumerate(path) if letter == "/"}
    for page in PAGES:
        text = prose(page)
        names = {*FILE.findall(text), *(name for name in FOLDER.findall(text) if name.endswith("/"))}
        missing = {name for name in names if f"/{name}" not in ends} - OF_A_READER
        assert not missing, f"{name_of(page)} names {sorted(missing)}"


NAMES_IN_FILE = re.compile(
    r"(`\w+(?:\(\))?`(?:,?(?: and| or)? (?:the \w+ )?`\w+(?:\(\))?`)*)(?:, [^`.;|]*)? (?:in |of |\()`([\w/-]+\.py)`"
)
"""`choose` in `choice/choose.py`, `choose` (`choice/choose.py`), or `A`, `B` and the limit `C` in `choose.py`."""


def names_in_files(text: str) -> list[tuple[str, str]]:
    """Return the pairs of an identifier and the file that a text states for it."""
    pairs = NAMES_IN_FILE.findall(" ".join(text.split()))
    return [(name, path) for names, path in pairs for name in re.findall(r"`(\w+)", names)]


def test_names_are_defined_in_stated_files() -> None:
    """Each name is defined in the file that the page states; the beginning of the path may be omitted."""
    sources = {f"/{path}": (ROOT / path).read_text() for path in tracked_paths() if path.endswith(".py")}
    pairs = [(name_of(page), *pair) for page in PAGES for pair in names_in_files(prose(page))]
    assert len(pairs) >= 60
    undefined = [
        (page, name, path)
        for page, name, path in pairs
        if not any(
            re.search(rf"^ *(?:def |class )?{name}\b", text, re.MULTILINE)
            for source, text in sources.items()
            if source.endswith(f"/{path}")
        )
    ]
    assert undefined == []


def test_listed_names_belong_to_the_file_after_the_list() -> None:
    text = "The limits are `A`,\n`B` and the share `C` in `s/x.py`; `d` (`y.py`) and `e`, a part of `z.py`, use them."
    names, files = "ABCde", ("s/x.py", "s/x.py", "s/x.py", "y.py", "z.py")
    assert names_in_files(text) == list(zip(names, files, strict=True))


IDENTIFIER = re.compile(r"`(\w+)(?:\(\))?`")
OF_OTHER_PROJECTS = {
    "FLAGS_enable_auto_recompute",
    "RecursiveMemoryEffects",
    "SignlessIntegerBinaryOperationWithOverflow",
    "Terminator",
    "control_deps",
    "early_stop",
    "enable_offload",
    "fwd_recompute_id",
    "is_recompute_op",
    "jax_compilation_cache_dir",
    "need_cse_after_recompute",
    "parseOptionalArrowTypeList",
    "recompute_id",
    "reorder_for_locality",
    "reorder_for_peak_memory",
    "torch_xla",
    "weights_0",
}
"""Identifiers of frameworks and compilers on the pages, which no file of this repository contains."""


def words_of_sources() -> set[str]:
    """Return the words of all sources, tests and programs, except those of this file."""
    result = set[str]()
    for path in tracked_paths():
        if path.endswith((".py", ".mlir", ".toml", ".yml", ".json")) and (ROOT / path) != Path(__file__).resolve():
            result.update(re.findall(r"\w+", (ROOT / path).read_text()))
    return result


def test_identifiers_on_the_pages_exist() -> None:
    """Each identifier between backticks occurs as a whole word in the sources."""
    sources = words_of_sources()
    by_page = {name_of(page): set(IDENTIFIER.findall(prose(page))) for page in PAGES}
    unknown = {page: sorted(names - sources - OF_OTHER_PROJECTS) for page, names in by_page.items()}
    assert {page: names for page, names in unknown.items() if names} == {}
    assert OF_OTHER_PROJECTS - set().union(*by_page.values()) == set(), "no page has these any more"
    assert OF_OTHER_PROJECTS & sources == set(), "these are found without an exception"
    assert "state_phases" not in sources and "write_phases" in sources


def test_index_links_to_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    targets = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {page for page in PAGES if page.parent in (index.parent, index.parent / "measured")} - {index}
    assert {name_of(page) for page in pages - targets} == set()
