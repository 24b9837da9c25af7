"""Docstrings of functions with Arrow or numpy data name columns, dtypes, order, shapes or units."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "gamelake").rglob("*.py"))
}
DATA_TYPE = re.compile(r"\b(?:pa\.(?:Table|RecordBatch|\w*Array)|np\.ndarray|NDArray)\b")
# Any of these words says more than the type does.
DATA_WORD = re.compile(
    r"\b(?:columns?|fields?|dtypes?|bool(?:ean)?s?|u?int(?:8|16|32|64)|float(?:32|64)|strings?|binary|dictionary"
    r"|timestamps?|microseconds|milliseconds|seconds|minutes|days|bytes"
    r"|order|ordered|sorted|ascending|rising|shape|length|parallel"
    r"|one (?:\w+ )?(?:per|for each|each)|a row (?:for )?each)\b",
    re.IGNORECASE,
)


def aliases(tree: ast.Module) -> set[str]:
    """Names that a module gives to types of columnar data."""
    found: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Assign):
            value, targets = node.value, node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            value, targets = node.value, [node.target]
        else:
            continue
        text = ast.unparse(value)
        if DATA_TYPE.search(text) and "Callable" not in text:
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


ALIASES = {module: aliases(tree) for module, tree in MODULES.items()}


def visible_aliases(module: str) -> set[str]:
    """A module's own names for types of columnar data, and those that it imports."""
    imports = [node for node in MODULES[module].body if isinstance(node, ast.ImportFrom)]
    imported = {
        (alias.asname or alias.name)
        for node in imports
        for alias in node.names
        if alias.name in ALIASES.get(node.module or "", set())
    }
    return ALIASES[module] | imported


def public_functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions and methods that other modules may call, by their dotted names."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{prefix}.{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield f"{prefix}.{node.name}", node


def takes_or_gives_data(function: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> bool:
    """Whether the signature has an Arrow or numpy type, or a name for one."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    annotations = [argument.annotation for argument in arguments] + [function.returns]
    for annotation in annotations:
        if annotation is not None:
            used = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
            if DATA_TYPE.search(ast.unparse(annotation)) or used & names:
                return True
    return False


FUNCTIONS = {
    name: ast.get_docstring(function) or ""
    for module, tree in MODULES.items()
    for name, function in public_functions(tree.body, module)
    if takes_or_gives_data(function, visible_aliases(module))
}


def test_public_functions_describe_their_columns_and_arrays() -> None:
    silent = {name for name, docstring in FUNCTIONS.items() if not DATA_WORD.search(docstring)}

    assert sorted(silent) == [], "name the columns, dtypes, order or units in the docstring"


def test_the_check_accepts_words_about_data_only() -> None:
    assert len(FUNCTIONS) > 80
    assert DATA_WORD.search("The bronze rows of records, in their order.")
    assert DATA_WORD.search("Args:\n    codes: int64, one per row.")
    assert not DATA_WORD.search("The rows of a batch.")
