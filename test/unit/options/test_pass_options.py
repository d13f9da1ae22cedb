"""Pass options taken from a dataclass that the pass does not inherit from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import pytest
from xdsl.passes import ModulePass

from recompute.driver.pipelines.pipeline import passes_of
from recompute.options.option_facts import EntryPoint, option_facts
from recompute.options.pass_options import has_options
from recompute.options.selection import Selection
from recompute.rewriting.loops import LoopsPass
from recompute.rewriting.mark import MarkPass
from recompute.rewriting.plan import PlanPass
from recompute.rewriting.recompute import RecomputePass
from recompute.tools.help.option_help import options_of
from recompute.transforms.offload import OffloadPass

PASSES: tuple[type[ModulePass], ...] = (MarkPass, LoopsPass, OffloadPass, PlanPass, RecomputePass)


@pytest.mark.parametrize("pass_class", PASSES)
def test_pass_options_give_a_selection_without_inheriting(pass_class: type[ModulePass]) -> None:
    (parsed,) = passes_of(f"{pass_class.name}{{segments=block* skip=1,2 outputs=true}}")
    assert not isinstance(parsed, Selection)
    assert Selection.of(parsed) == Selection(segments="block*", skip=(1, 2), outputs=True)


@pytest.mark.parametrize("pass_class", PASSES)
def test_every_option_has_its_default_and_description(pass_class: type[ModulePass]) -> None:
    options = {option.name: option for option in options_of(pass_class)}
    assert all(option.meaning for option in options.values())
    for option in fields(Selection):
        assert options[option.name].default == str(option.default)


def test_own_options_follow_and_replace_the_inherited_ones() -> None:
    @dataclass(frozen=True)
    class Options:
        """Two options.

        first: the first.
        second: the second.
        """

        first: int = 1
        second: int = 2

    @dataclass(frozen=True)
    @has_options(Options)
    class Pass:
        """A pass.

        third: the third.
        """

        third: int = 3
        second: int = 4

    options = [(option.name, option.default, option.meaning) for option in options_of(Pass)]
    assert options == [("first", "1", "the first"), ("second", "4", "the second"), ("third", "3", "the third")]
    assert replace(Pass(), third=5) == Pass(third=5)


def test_pass_has_the_options_of_its_entry_point() -> None:
    @dataclass(frozen=True)
    class Options:
        """Options.

        Attributes:
            ours: The help text of all passes.
            parsed: The help text of this option,
                in two lines.
        """

        ours: int = field(default=1, metadata=option_facts(EntryPoint.PLAN_PASS))
        others: int = field(default=2, metadata=option_facts(EntryPoint.JIT))
        parsed: object = field(default="", metadata=option_facts(EntryPoint.PLAN_PASS, pass_type="str"))

    @dataclass(frozen=True)
    @has_options(Options, EntryPoint.PLAN_PASS, first=("parsed",))
    class Pass:
        """A pass.

        ours: the help text of this pass.
        """

    options = [(option.name, option.type, option.meaning) for option in options_of(Pass)]
    assert options == [
        ("parsed", "str", "the help text of this option, in two lines"),
        ("ours", "int", "the help text of this pass"),
    ]


def test_option_without_a_default_is_rejected() -> None:
    @dataclass(frozen=True)
    class Options:
        required: int

    with pytest.raises(AssertionError, match=r"Options\.required has no default"):
        has_options(Options)(type("Pass", (), {}))
