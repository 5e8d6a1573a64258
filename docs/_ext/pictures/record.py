"""Run a few lines of torch and note every tensor, the call that made it, and what autograd says of it.

The calls are seen with `torch.overrides.TorchFunctionMode`.
Whether a gradient flows is never guessed from a call: it is read from `grad_fn.next_functions`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node as GradFn
from torch.autograd.graph import get_gradient_edge
from torch.overrides import TorchFunctionMode, resolve_name

FILENAME = "<autograd-graph>"
_NAMES_HOOK = "__note_names__"


@dataclass(frozen=True)
class Step:
    """One tensor in one state: an in-place write makes a new step of the same tensor.

    name: the variable it is bound to; empty when the code gives it none.
    op: the call that made this state; empty for tensors that the recorded calls only read.
    shape: sizes, as in `Tensor.shape`.
    grad_fn: the name of the autograd node, without a namespace; empty for leaves and constants.
    leaf: a leaf that requires grad, so one whose `.grad` backward fills.
    has_grad: `.grad` is filled when the code has ended; false for all but leaves.
    saved: what the autograd node keeps for backward, read from it when the step was made;
        None where torch does not show it.
    state: "held", "freed" or "overwritten" (changed in place since, so that backward raises): what became
        of `saved` when the code had ended; empty when nothing was saved.
    """

    name: str
    op: str
    shape: tuple[int, ...]
    grad_fn: str
    leaf: bool
    has_grad: bool
    saved: Saved | None
    state: str

    @property
    def call(self) -> str:
        """The call as it is written: `mul()`, and `.data` for an attribute."""
        return self.op if self.op.startswith(".") or not self.op else f"{self.op}()"

    @property
    def requires_grad(self) -> bool:
        return self.leaf or bool(self.grad_fn)


@dataclass(frozen=True)
class Saved:
    """Tensors that an autograd node keeps.

    nbytes: bytes of the storages kept alive, each counted once.
    steps: the steps that are these tensors, by index in `Graph.steps`; tensors that are no step are left out.
    """

    nbytes: int
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Edge:
    """A step read by the call that made another.

    source, target: indices in `Graph.steps`.
    paths: how many autograd edges carry a gradient from target to source; 0 when none does.
    """

    source: int
    target: int
    paths: int


@dataclass(frozen=True)
class Graph:
    steps: tuple[Step, ...]
    edges: tuple[Edge, ...]

    def labels(self) -> list[str]:
        """A name for every step, each different; a name that several states share is numbered."""
        bases = [s.name or s.call or "tensor" for s in self.steps]
        seen: dict[str, int] = {}
        labels = []
        for base in bases:
            seen[base] = seen.get(base, 0) + 1
            labels.append(f"{base} #{seen[base]}" if bases.count(base) > 1 else base)
        return labels


def record(code: str) -> tuple[Graph, dict[str, Any]]:
    """Run `code` in a fresh namespace; return its graph and the namespace.

    The random state, the grad mode and the default dtype are put back afterwards.
    Raises what the code raises, and ValueError when the code makes no tensor.
    """
    recorder = _Recorder()
    namespace: dict[str, Any] = {"__name__": "__autograd_graph__", _NAMES_HOOK: lambda: recorder.note_names(namespace)}
    program = compile(_with_names_noted(ast.parse(code, FILENAME)), FILENAME, "exec")
    grad_mode, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        with torch.random.fork_rng(devices=[]), recorder:
            exec(program, namespace)
    finally:
        torch.set_grad_enabled(grad_mode)
        torch.set_default_dtype(dtype)
        del namespace[_NAMES_HOOK]
    graph = recorder.graph(namespace)
    if not graph.steps:
        raise ValueError("the code makes no tensor, so there is no graph to draw")
    return graph, namespace


# Names are noted after every statement, since a loop binds the same name again and again.


def _with_names_noted(tree: ast.Module) -> ast.Module:
    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, [s for statement in statements for s in (statement, *note_after(statement))])
        for child in ast.iter_child_nodes(node):
            visit(child)

    def note_after(statement: ast.stmt) -> list[ast.stmt]:
        # `from __future__` must stay at the top, and imports bind no tensor.
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            return []
        note = ast.Expr(ast.Call(ast.Name(_NAMES_HOOK, ast.Load()), [], []))
        return [ast.fix_missing_locations(ast.copy_location(note, statement))]

    visit(tree)
    return tree


def _named_tensors(namespace: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Tensors with the expression that reaches them: variables first, then what is inside of other values."""
    public = [(name, value) for name, value in namespace.items() if not name.startswith("__")]
    yield from ((name, value) for name, value in public if isinstance(value, Tensor))
    for name, value in public:
        if isinstance(value, torch.nn.Module):
            inside: Any = ((f"{name}.{path}", t) for path, t in (*value.named_parameters(), *value.named_buffers()))
        elif isinstance(value, dict):
            inside = ((f"{name}[{key!r}]", item) for key, item in value.items())
        elif isinstance(value, (list, tuple)):
            inside = ((f"{name}[{k}]", item) for k, item in enumerate(value))
        else:
            continue
        yield from ((path, item) for path, item in inside if isinstance(item, Tensor))


def _tensors(value: Any) -> Iterator[Tensor]:
    """Tensors in the arguments or the result of a call, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _unique(tensors: Iterator[Tensor]) -> list[Tensor]:
    return list({id(t): t for t in tensors}.values())


def _op_name(function: Callable[..., Any]) -> str | None:
    """How a call is named in a picture; None for calls that read or set an attribute other than a view of the data."""
    name = getattr(function, "__name__", "call")
    if name == "__get__":
        attribute = (resolve_name(function) or "").split(".")[-2:-1]
        return f".{attribute[0]}" if attribute and attribute[0] in _VIEW_ATTRIBUTES else None
    if name == "__set__":
        return None
    if name.startswith("__") and name.endswith("__"):
        return name.strip("_")
    return name


_VIEW_ATTRIBUTES = {"data", "T", "mT", "H", "mH", "real", "imag"}


def _grad_fn_name(fn: GradFn | None) -> str:
    return fn.name().rpartition("::")[2] if fn is not None else ""


def _saved_tensors(fn: GradFn) -> list[Tensor]:
    """The tensors that one autograd node keeps for backward. Raises RuntimeError when they can no longer be read."""
    found: list[Tensor] = []
    for name in dir(fn):
        # torch adds one `_raw_saved_*` for each saved tensor; what else is saved is sizes and flags.
        if name == "_raw_saved_tensors":
            found += _tensors(fn.saved_tensors)  # type: ignore[attr-defined]  # torch.autograd.Function
        elif name.startswith("_raw_saved_"):
            found += _tensors(getattr(fn, name.replace("_raw_saved_", "_saved_", 1)))
    return found


class _Draft:
    """A step while the code still runs."""

    def __init__(self, tensor: Tensor, op: str) -> None:
        self.tensor, self.op, self.name = tensor, op, ""
        self.shape = tuple(tensor.shape)
        self.functions: list[GradFn] = []
        self.grad_fn = ""
        self.leaf = False
        self.saved: Saved | None = None


class _Recorder(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self._paused = False
        self._drafts: list[_Draft] = []
        self._edges: dict[tuple[int, int], int] = {}
        self._current: dict[int, int] = {}  # id of a tensor -> its newest step
        self._states: dict[int, tuple[GradFn | None, int | None]] = {}
        self._gradient_edges: dict[tuple[GradFn, int], int] = {}  # autograd's edge -> the step it leads to
        self._names: dict[int, tuple[str, Tensor]] = {}

    def __torch_function__(self, func, types, args=(), kwargs=None):  # noqa: ANN001, ANN204 (torch's signature)
        kwargs = kwargs or {}
        op = None if self._paused else _op_name(func)
        if op is None:
            return func(*args, **kwargs)
        inputs = _unique(_tensors((args, kwargs)))
        sources = [self._step_of(t) for t in inputs]
        result = func(*args, **kwargs)
        self._note_call(op, inputs, sources, _unique(_tensors(result)))
        return result

    def _note_call(self, op: str, inputs: list[Tensor], sources: list[int], outputs: list[Tensor]) -> None:
        touched = {id(t) for t in (outputs or inputs)}
        known = [self._drafts[step].tensor for step in self._current.values()]
        changed = [t for t in known if self._has_changed(t, id(t) in touched)]
        written = {id(t) for t in changed}
        # A base comes before its views: autograd gives a view a new history that starts at the base.
        for tensor in sorted(changed, key=lambda t: t._is_view()):
            base = tensor._base if tensor._is_view() else None
            if base is not None and id(base) in written:
                self._add(tensor, "", [])
            elif self._is_untouched(tensor) and inputs == [tensor]:
                self._refresh(self._current[id(tensor)])  # filling a new tensor is not a step
            else:
                # A write through a view reaches its base; autograd does not go back through the view.
                through = {self._current[id(t)] for t in changed if t._base is tensor}
                self._add(tensor, op, [s for s in sources if s not in through])
        for tensor in outputs:
            if id(tensor) not in self._current:
                self._add(tensor, op, sources)

    def _step_of(self, tensor: Tensor) -> int:
        """The newest step of `tensor`, made now if no call has shown it before."""
        step = self._current.get(id(tensor))
        if step is None:
            return self._add(tensor, "", [])
        # What changes no data is not seen as a call's result: requires_grad_(), the end of a custom Function.
        if self._state(tensor)[0] is not self._states[id(tensor)][0]:
            sources = [s for s, t in self._edges if t == step]
            self._drafts[step].op = ""
            self._link(step, sources)
        self._refresh(step)
        return step

    def _add(self, tensor: Tensor, op: str, sources: list[int]) -> int:
        step = len(self._drafts)
        self._drafts.append(_Draft(tensor, op))
        self._current[id(tensor)] = step
        name = self._names.get(id(tensor))
        if name and not op:
            self._drafts[step].name = name[0]
        self._link(step, sources)
        self._refresh(step)
        return step

    def _refresh(self, step: int) -> None:
        """Read again what may change without a new step."""
        draft = self._drafts[step]
        tensor = draft.tensor
        fn, _ = self._states[id(tensor)] = self._state(tensor)
        draft.leaf = fn is None and tensor.requires_grad
        if fn is not None:
            self._gradient_edges[fn, tensor.output_nr] = step
        elif draft.leaf:
            edge = get_gradient_edge(tensor)
            self._gradient_edges[edge.node, edge.output_nr] = step

    def _link(self, step: int, sources: list[int]) -> None:
        """Ask autograd where gradients go from `step`, and what it keeps for that."""
        draft = self._drafts[step]
        fn = self._state(draft.tensor)[0]
        paths: dict[int, int] = {}
        functions: list[GradFn] = [fn] if fn is not None else []
        # One call can make several autograd nodes; the walk ends where a known tensor begins.
        for function in functions:
            for following, output_nr in function.next_functions:
                if following is None:
                    continue
                reached = self._gradient_edges.get((following, output_nr))
                if reached is not None:
                    paths[reached] = paths.get(reached, 0) + 1
                elif following not in functions:
                    functions.append(following)
        for source in dict.fromkeys([*sources, *paths]):
            if source != step:
                self._edges[source, step] = paths.get(source, 0)
        draft.grad_fn = _grad_fn_name(fn)
        draft.functions = functions
        draft.saved = self._read_saved(draft, [*sources, step])

    def _read_saved(self, draft: _Draft, near: list[int]) -> Saved | None:
        # torch does not show what is inside of CopySlices, the node of a write through a view.
        if any(_grad_fn_name(fn) == "CopySlices" for fn in draft.functions):
            return None
        storages: dict[int, int] = {}
        steps: list[int] = []
        for saved in (t for fn in draft.functions for t in _saved_tensors(fn)):
            storages[saved.untyped_storage().data_ptr()] = saved.untyped_storage().nbytes()
            steps += [s for s in near if _is_same(self._drafts[s].tensor, saved)][:1]
        return Saved(sum(storages.values()), tuple(dict.fromkeys(steps)))

    def _state(self, tensor: Tensor) -> tuple[GradFn | None, int | None]:
        version = None if tensor.is_inference() else tensor._version
        try:
            return tensor.grad_fn, version
        except RuntimeError:
            # A view that autograd no longer allows to be used. Nothing is wrong until the code uses it.
            return self._states[id(tensor)][0], version

    def _has_changed(self, tensor: Tensor, touched: bool) -> bool:
        fn, version = self._state(tensor)
        old_fn, old_version = self._states[id(tensor)]
        # A version alone also moves when an alias is written, which makes no step of this tensor.
        return fn is not old_fn or (touched and version != old_version)

    def _is_untouched(self, tensor: Tensor) -> bool:
        step = self._current[id(tensor)]
        return not self._drafts[step].name and not any(step in edge for edge in self._edges)

    def note_names(self, namespace: dict[str, Any]) -> None:
        self._paused = True
        try:
            for name, tensor in _named_tensors(namespace):
                self._note_name(name, tensor)
                if self._is_known_leaf(tensor) and tensor.grad is not None:
                    self._note_name(f"{name}.grad", tensor.grad)
        finally:
            self._paused = False

    def _note_name(self, name: str, tensor: Tensor) -> None:
        self._names.setdefault(id(tensor), (name, tensor))
        if id(tensor) in self._current:
            draft = self._drafts[self._step_of(tensor)]
            draft.name = draft.name or name

    def _is_known_leaf(self, tensor: Tensor) -> bool:
        step = self._current.get(id(tensor))
        return step is not None and self._drafts[step].leaf

    def graph(self, namespace: dict[str, Any]) -> Graph:
        """What was recorded, without tensors that no call read and no variable holds."""
        self.note_names(namespace)
        top = {id(v) for v in namespace.values() if isinstance(v, Tensor)}
        for tensor in [t for _, t in self._names.values() if id(t) in top]:
            self._step_of(tensor)
        linked = {step for edge in self._edges for step in edge}
        kept = [s for s, d in enumerate(self._drafts) if s in linked or id(d.tensor) in top]
        index = {step: k for k, step in enumerate(kept)}
        edges = sorted((index[s], index[t], paths) for (s, t), paths in self._edges.items())
        targets = {t for _, t, _ in edges}
        steps = tuple(self._finished(self._drafts[s], index, index[s] in targets) for s in kept)
        return Graph(steps, tuple(Edge(*edge) for edge in edges))

    def _finished(self, draft: _Draft, index: dict[int, int], is_result: bool) -> Step:
        saved = draft.saved
        if saved is not None:
            saved = Saved(saved.nbytes, tuple(index[s] for s in saved.steps if s in index))
        return Step(
            name=draft.name,
            op=draft.op if is_result else "",
            shape=draft.shape,
            grad_fn=draft.grad_fn,
            leaf=draft.leaf,
            has_grad=draft.leaf and draft.tensor.grad is not None,
            saved=saved if draft.grad_fn else None,
            state=_state_of_saved(draft),
        )


def _is_same(tensor: Tensor, saved: Tensor) -> bool:
    return (
        tensor.data_ptr() == saved.data_ptr()
        and tensor.shape == saved.shape
        and tensor.stride() == saved.stride()
        and tensor.dtype == saved.dtype
    )


def _state_of_saved(draft: _Draft) -> str:
    state = ""
    for fn in draft.functions:
        try:
            state = "held" if _saved_tensors(fn) or state else state
        except RuntimeError as error:
            if "inplace operation" in str(error):
                return "overwritten"
            if "already been freed" in str(error):
                return "freed"
            raise
    return state
