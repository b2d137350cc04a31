"""Facts of methods and terms: names, hyperparameters, labels and colours.

The facts of a built-in method are read from the source of its file, where they are declared: its signature, the first
line of its docstring and the arguments of its decorator, ``@register_method(…)``. So a list of methods, a mistyped
name, the plan of a study or the labels of a figure need no import of torch.
"""

from __future__ import annotations

import ast
import inspect
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt

from unweave import parameters
from unweave.errors import ArgumentError, unknown_name
from unweave.methods.spec import Stage

LabelNeed = Literal["none", "some", "all"]

# What `create` takes for a VAE, next to its hyperparameters.
VAE_SETTINGS = (
    "latent_size",
    "architecture",
    "reconstruction",
    "correlation",
    "correlated",
    "capacity",
    "extra_terms",
    "prior",
    "labels",
)
# Okabe and Ito's colours, which people who are colour-blind can distinguish.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#B8A800", "#000000", "#7F7F7F")
MARKERS = "os^DvPX*hd<>"
# Arguments of a class's constructor that come from the data, and are no hyperparameters.
FROM_DATA = ("image_shape", "labels")

_PACKAGE = Path(__file__).parent
_LAST = 1_000  # the order of methods that declare none


@dataclass(frozen=True)
class MethodInfo:
    """What is known of a method without importing it.

    Parameters
    ----------
    name
        as ``create`` takes it.
    label
        the name for people, as the papers write it: "β-TCVAE".
    summary
        the first line of its docstring.
    hyperparameters
        their defaults by name.
    annotations
        their declared types and bounds by name.
    paper
        where the method is from.
    strength
        the hyperparameter by which the papers vary the method; "" if it has none.
    strength_label
        the strength for people: "β".
    color, marker
        in figures.
    order
        in lists and figures; methods of one order are sorted by name.
    labels
        whether it learns from labels, and if so, whether every row must have them; None: its parts, those of a VAE, say
        so.
    is_vae
        whether it is a composition on the VAE, which has the settings ``VAE_SETTINGS``.
    path
        "module:attribute" of the function or class.

    Examples
    --------
    >>> info = uw.methods.describe("beta_tcvae")
    >>> info.label, info.strength, dict(info.hyperparameters)
    ('β-TCVAE', 'beta', {'beta': 6.0, 'estimator': 'logsumexp'})
    """

    name: str
    label: str
    summary: str
    hyperparameters: Mapping[str, Any]
    annotations: Mapping[str, Any]
    paper: str
    strength: str
    strength_label: str
    color: str
    marker: str
    order: int
    labels: LabelNeed | None
    is_vae: bool
    path: str
    factory: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of all keyword arguments that ``create`` takes for this method, besides ``seed``."""
        labels = ("labels",) if self.labels not in (None, "none") else ()
        return (*self.hyperparameters, *(VAE_SETTINGS if self.is_vae else labels))

    @property
    def stages(self) -> tuple[str, ...]:
        """The hyperparameters that are earlier stages."""
        return tuple(key for key, annotation in self.annotations.items() if annotation == Stage)

    def load(self) -> Callable[..., Any]:
        """The function or class itself."""
        if self.factory is not None:
            return self.factory
        module, _, attribute = self.path.partition(":")
        loaded: Callable[..., Any] = getattr(import_module(module), attribute)
        return loaded

    def check_settings(self, given: Mapping[str, Any]) -> None:
        """Refuse names that are none of its settings, and hyperparameters out of bounds; imports nothing.

        Schedules and earlier stages, which are mappings, are judged when the method is created.
        """
        for key in given:
            if key not in self.settings:
                raise unknown_name(f"hyperparameter of {self.name}", key, self.hyperparameters)
        plain = {key: value for key, value in given.items() if not isinstance(value, Mapping)}
        self.check({key: value for key, value in plain.items() if key in self.hyperparameters})

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Hyperparameters as their declarations want them; unknown and wrong ones are refused."""
        checked = {}
        for key, value in given.items():
            if key not in self.hyperparameters:
                raise unknown_name(f"hyperparameter of {self.name}", key, self.hyperparameters)
            checked[key] = parameters.check_value(key, value, self.annotations.get(key, Any))
        return checked


@dataclass(frozen=True)
class TermInfo:
    """What is known of a built-in term without importing it."""

    name: str
    summary: str
    needs_labels: bool
    path: str


def method_info(name: str, factory: Callable[..., Any], *, is_vae: bool, **declared: Any) -> MethodInfo:
    """The facts of an imported method: of its signature, its docstring and its decorator's arguments."""
    defaults = parameters.defaults(factory)
    takes_labels = not is_vae and "labels" in defaults
    for key in () if is_vae else FROM_DATA:
        defaults.pop(key, None)
    for key, value in defaults.items():
        if value is inspect.Parameter.empty:
            raise ArgumentError(key, f"hyperparameter of {name}", "needs a default")
    annotations = {k: v for k, v in parameters.declared(factory).items() if k in defaults}
    summary = first_line(inspect.getdoc(factory))
    path = f"{factory.__module__}:{factory.__qualname__}"
    declared["labels"] = _label_need(name, declared.get("labels"), is_vae, takes_labels)
    return _info(name, summary, defaults, annotations, is_vae, path, factory, **declared)


@cache
def builtin_methods() -> dict[str, MethodInfo]:
    """The methods of this package by name, in order."""
    methods = {}
    for module, tree in _modules():
        for node, decorator in _decorated(tree, "register_method"):
            name, declared = _arguments(decorator)
            function = node if isinstance(node, ast.FunctionDef) else _constructor(node)
            defaults, annotations = _signature(function, _namespace(tree))
            is_vae = isinstance(node, ast.FunctionDef)
            path, summary = f"{module}:{node.name}", first_line(ast.get_docstring(node))
            takes = "labels" in [one.arg for one in (*function.args.args, *function.args.kwonlyargs)]
            declared["labels"] = _label_need(name, declared.get("labels"), is_vae, takes)
            methods[name] = _info(name, summary, defaults, annotations, is_vae, path, **declared)
    return dict(sorted(methods.items(), key=lambda entry: (entry[1].order, entry[0])))


@cache
def builtin_terms() -> dict[str, TermInfo]:
    """The terms of this package by name."""
    terms = {}
    for module, tree in _modules():
        for node, decorator in _decorated(tree, "register_term"):
            name, _ = _arguments(decorator)
            needs_labels = any(_sets(line, "needs_labels") for line in node.body)
            summary = first_line(ast.get_docstring(node))
            terms[name] = TermInfo(name, summary, needs_labels, f"{module}:{node.name}")
    return dict(sorted(terms.items()))


def _sets(line: ast.stmt, name: str) -> bool:
    """Whether a line of a class sets the attribute of this name to True."""
    match line:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=True)):
            return target == name
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.Constant(value=True)):
            return target == name
    return False


def _label_need(name: str, declared: LabelNeed | None, is_vae: bool, takes_labels: bool) -> LabelNeed | None:
    """Whether a method learns from labels: a class does if its constructor takes them."""
    if is_vae:
        return declared
    need = declared or ("all" if takes_labels else "none")
    if takes_labels != (need != "none"):
        message = f"a class that learns from labels has a constructor that takes labels; that of {name} "
        raise ArgumentError("labels", declared, message + ("does" if takes_labels else "does not"))
    return need


def spare_style(name: str) -> tuple[str, str]:
    """A colour and a marker that no built-in method has, always the same for a name.

    Examples
    --------
    >>> spare_style("my_vae") == spare_style("my_vae")
    True
    """
    taken = _taken()
    spare = [pair for pair in product(PALETTE, MARKERS) if pair not in taken]
    return spare[zlib.crc32(name.encode()) % len(spare)]


def _info(
    name: str,
    summary: str,
    defaults: Mapping[str, Any],
    annotations: Mapping[str, Any],
    is_vae: bool,
    path: str,
    factory: Callable[..., Any] | None = None,
    *,
    label: str | None = None,
    paper: str = "",
    strength: str | None = None,
    strength_label: str | None = None,
    color: str | None = None,
    marker: str | None = None,
    order: int = _LAST,
    labels: LabelNeed | None = None,
) -> MethodInfo:
    """Facts with their defaults."""
    if strength is not None and strength not in defaults:
        raise unknown_name("strength", strength, defaults)
    strength = next(iter(defaults), "") if strength is None else strength
    if color is None or marker is None:
        spare = spare_style(name)
        color, marker = color or spare[0], marker or spare[1]
    return MethodInfo(
        name=name,
        label=name.replace("_", " ") if label is None else label,
        summary=summary,
        hyperparameters=defaults,
        annotations=annotations,
        paper=paper,
        strength=strength,
        strength_label=strength if strength_label is None else strength_label,
        color=color,
        marker=marker,
        order=order,
        labels=labels,
        is_vae=is_vae,
        path=path,
        factory=factory,
    )


# --- reading source files ----------------------------------------------------------------------------


@cache
def _modules() -> tuple[tuple[str, ast.Module], ...]:
    """The modules of all families that register something: their names and syntax trees."""
    modules = []
    for path in sorted(_PACKAGE.glob("*/*.py")):
        text = path.read_text(encoding="utf-8")
        if "@register_" in text:
            modules.append((f"unweave.methods.{path.parent.name}.{path.stem}", ast.parse(text)))
    return tuple(modules)


def _decorated(tree: ast.Module, decorator: str) -> Iterator[tuple[ast.FunctionDef | ast.ClassDef, ast.Call]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == decorator:
                    yield node, call


@cache
def _taken() -> frozenset[tuple[str, str]]:
    """The colours and markers that built-in methods declare."""
    calls = [_arguments(call)[1] for _, tree in _modules() for _, call in _decorated(tree, "register_method")]
    return frozenset((declared.get("color", ""), declared.get("marker", "")) for declared in calls)


def _arguments(call: ast.Call) -> tuple[str, dict[str, Any]]:
    """The name and the keyword arguments of a decorator, which are literals."""
    declared = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
    return ast.literal_eval(call.args[0]), declared


def _constructor(node: ast.ClassDef) -> ast.FunctionDef:
    return next(line for line in node.body if isinstance(line, ast.FunctionDef) and line.name == "__init__")


def _signature(
    function: ast.FunctionDef, namespace: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Defaults and annotations of the hyperparameters."""
    arguments = function.args
    names = [*arguments.args, *arguments.kwonlyargs]
    missing: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
    pairs = zip(names, [*missing, *arguments.defaults, *arguments.kw_defaults], strict=True)
    known = [(one, value) for one, value in pairs if one.arg not in ("self", *FROM_DATA)]
    defaults = {one.arg: _evaluate(value, namespace) for one, value in known if value is not None}
    annotations = {one.arg: _evaluate(one.annotation, namespace) for one, _ in known if one.annotation}
    return defaults, annotations


def _namespace(tree: ast.Module) -> dict[str, Any]:
    """What annotations consist of: our declared types, and the aliases that a module defines of them."""
    names: dict[str, Any] = {**vars(parameters), "Annotated": Annotated, "Literal": Literal, "Stage": Stage}
    names |= {"Ge": Ge, "Gt": Gt, "Le": Le, "Lt": Lt}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                names[node.targets[0].id] = _evaluate(node.value, names)
            except NameError:
                continue  # not of declared types: no annotation of a hyperparameter
    return names


def _evaluate(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """The value of an expression in a file of this package."""
    return eval(compile(ast.Expression(node), "<catalogue>", "eval"), dict(namespace))


def first_line(docstring: str | None) -> str:
    """The first line of a docstring; "" if there is none."""
    return docstring.strip().split("\n")[0] if docstring and docstring.strip() else ""
