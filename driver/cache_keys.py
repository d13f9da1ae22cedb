"""Keys and records of the disk cache: the inputs that an answer depends on, and the stored form of a rewrite.

A key covers the input, the options, everything that was registered (rules, bytes of types, purity, phase sources) and
the versions of this package and of those that it computes with. What cannot be identified across processes has no key
and is not cached: planners, policies and measurements that are Python functions, pipelines, and registered functions
that refer to objects without comparable content.

A stored rewrite is not proved again: it is the answer that was proved when it was stored.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr
from xdsl.ir import SSAValue

from ..analysis.request.policies import SelectionByFunction
from ..analysis.step.phase_sources import registered_sources
from ..interpreters.proof import Proof
from ..interpreters.user_kernels import registered_pure
from ..options.recompute_options import RecomputeOptions
from ..planning.plan_file import from_json
from ..planning.solvers.effort import is_compiled
from ..rules.registry import registrations
from ..support.diagnostics import UNKNOWN, Remark, RemarkKind, Topic, place_of, position_of
from ..support.fingerprint import NoFingerprint, fingerprint
from .api import Rewritten

PACKAGES = ("xdsl", "jax", "jaxlib", "numpy", "numba", "highspy", "scipy", "ortools")
"""The packages that an answer may depend on, installed or not."""
ROOT = Path(__file__).resolve().parent.parent
NOT_SOURCES = frozenset({"test", "docs", "examples", "benchmarks", "typings", "build"})


def key_of(kind: str, *parts: object) -> str | None:
    """Return the key of an answer that depends on these values; None if it cannot be cached.

    kind: The name of what is stored, such as "rewrite". parts: Values that have a fingerprint; None stands for itself.
    """
    try:
        return fingerprint((kind, versions(), is_compiled(), _registered(), parts))
    except (NoFingerprint, RecursionError):
        return None


def key_of_options(options: RecomputeOptions) -> str:
    """Return the part of a key that stands for the options. Raises `NoFingerprint` for functions, passes and time
    limits."""
    unstorable = [
        name for name in ("planner", "measure", "pipeline", "time_limit") if getattr(options, name) is not None
    ]
    if unstorable or isinstance(options.selection, SelectionByFunction):
        raise NoFingerprint(
            "the result cannot be cached: it depends on more than the content of "
            f"the option {(*unstorable, 'policy')[0]}"
        )
    return fingerprint((options, content_of(options.cost)))


def content_of(path: str) -> str | None:
    """Return the digest of the file that an option may name; None if there is none."""
    try:
        return sha256(Path(path).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _registered() -> object:
    """Return all declarations that change how a step is read, rewritten or proved."""
    return registrations(), registered_pure(), tuple(registered_sources().items())


@cache
def versions() -> Mapping[str, str | None]:
    """Return the versions of this package and of `PACKAGES`; None for a package that is not installed."""
    packages = {name: _version_of(name) for name in PACKAGES}
    return {"python": platform.python_version(), "recompute": own_version(ROOT), **packages}


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def own_version(root: Path) -> str:
    """Return the digest of the sources: of the record of an installed wheel, otherwise of the files, which may be
    edited."""
    records = [path / "RECORD" for path in root.parent.glob("xdsl_recompute-*.dist-info")]
    digest = sha256()
    for path in records if len(records) == 1 and records[0].is_file() else _sources(root):
        digest.update(f"{path.relative_to(root.parent)}\n".encode() + sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _sources(root: Path) -> list[Path]:
    folders = [path for path in root.iterdir() if path.is_dir() and path.name not in NOT_SOURCES]
    inside = [path for folder in folders if not folder.name.startswith(".") for path in folder.rglob("*.py")]
    return sorted([*root.glob("*.py"), *inside])


def record_of(rewritten: Rewritten) -> dict[str, Any]:
    """Return a rewrite as values of JSON, without its modules, which the caller stores. A proof must have succeeded."""
    proof = rewritten.proof
    assert proof is None or proof.difference is None, "a rewrite that is not proved is an error"
    return {
        "plans": rewritten.plan_text,
        "remarks": [record_of_remark(remark) for remark in rewritten.remarks],
        "proof": None if proof is None else asdict(proof),
        "copies": rewritten.copies,
        "extra_flops": rewritten.extra_flops,
        "spelling": spelling_of(rewritten.module) if rewritten.copies else None,
        "saving": rewritten.predicted_saving if rewritten.copies else None,
    }


def spelling_of(module: ModuleOp) -> dict[str, Any]:
    """Return what MLIR does not preserve of a module: the order of attributes, and the names of values.

    Both are tables of distinct entries, with a number for each operation and for each value in program order.
    """
    orders, names = dict[tuple[str, ...], int](), dict[str | None, int]()
    order_of = [orders.setdefault(tuple(op.attributes), len(orders)) for op in module.walk()]
    name_of = [names.setdefault(value.name_hint, len(names)) for value in _values(module)]
    return {"orders": list(map(list, orders)), "order_of": order_of, "names": list(names), "name_of": name_of}


def spelled_as(module: ModuleOp, spelling: Mapping[str, Any]) -> ModuleOp:
    """Return the module, changed in place, with the spelling that `spelling_of` found."""
    for op, number in zip(module.walk(), spelling["order_of"], strict=True):
        op.attributes = {name: op.attributes[name] for name in spelling["orders"][number]}
    for value, number in zip(_values(module), spelling["name_of"], strict=True):
        value.name_hint = spelling["names"][number]
    return module


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    """Yield the results of each operation, and the arguments of its blocks."""
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _proof_from(record: dict[str, Any]) -> Proof:
    tuples: dict[str, Any] = {name: tuple(record[name]) for name in ("believed", "composites")}
    return Proof(**{**record, **tuples})


class StoredRewrite(Rewritten):
    """A rewrite read from the cache. Modules and plans are read when they are first used."""

    def __init__(self, record: Mapping[str, Any], module: Callable[[], ModuleOp], original: Callable[[], ModuleOp]):
        proof: dict[str, Any] | None = record["proof"]
        values: dict[str, object] = {
            "remarks": tuple([remark_from(remark) for remark in record["remarks"]]),
            "proof": None if proof is None else _proof_from(proof),
            "copies": record["copies"],
            "extra_flops": record["extra_flops"],
            "_saving": record["saving"],
            "_readers": {"module": module, "_original": original, "plans": lambda: from_json(record["plans"])},
        }
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        """Read an attribute of the stored rewrite at its first access."""
        readers: Mapping[str, Callable[[], object]] = self.__dict__.get("_readers", {})
        if name not in readers:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        self.__dict__[name] = value = readers[name]()
        return value


def record_of_remark(remark: Remark) -> list[str]:
    """Return the position of a remark, as text, its reason, its kind, its topic, and its place if it has no
    position."""
    operation = remark.operation
    return [position_of(operation), remark.reason, remark.kind.value, remark.topic.value, place_of(operation)]


def remark_from(record: tuple[str, str, str, str, str]) -> Remark:
    """Return the remark of a record, at an empty module that stands at the position of the operation."""
    position, reason, kind, topic, place = record
    module = ModuleOp([])
    if position != UNKNOWN:
        file, line, column = position.rsplit(":", 2)
        module.location = FileLineColLoc(StringAttr(file), IntAttr(int(line)), IntAttr(int(column)))
    return Remark(module, reason, RemarkKind(kind), Topic(topic), place)
