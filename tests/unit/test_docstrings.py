"""Docstrings begin with a verb, and say the columns, dtypes, order, shapes or units of Arrow and numpy data."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

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
PACKAGES = ("gamelake", "jobs", "services", "tools")
# The imperative, since a plural noun looks like a verb in the third person: "Records", "Names", "Counts".
# Without `give`, `have` and `say`: a function returns.
_VERBS = """
    accept acknowledge add adjust advance aggregate allow answer append apply approximate archive ask assemble
    assert assign attach authenticate authorize await backfill balance begin bind buffer build bump calculate
    call cancel capture carry cast change check choose claim clamp classify clean clear clone close collect combine
    commit compact compare compile complete compress compute configure confirm connect consume continue convert
    copy correct count cover create cut deal decide declare decode decompress decorate decrypt define delay
    delete deliver derive describe destroy detect determine disable discard display divide do download downsample drain
    draw drop dump emit enable encode encrypt end enforce enqueue ensure enter erase escape establish estimate
    evaluate evict examine exclude execute exit expand expect expire explain export expose extend extract fail
    fetch fill filter find finish flag flatten flush fold follow force forget format forward free freeze gather
    generate get grant group hand handle hash hide hold identify ignore import include increase index infer
    inform initialize inject insert inspect install interpret intersect invalidate issue iterate join judge keep kill
    launch learn leave limit link list load locate lock log look make map mark mask match measure merge migrate
    mount move name narrow note notify observe omit open override overwrite parse pass patch pause perform pin
    plan poll pop prefix prepare prevent print probe process produce prove provide prune publish pull push put query
    queue quote raise rank read rebuild recall receive recognize recompute reconcile reconnect record recover
    redirect reduce refresh refuse register reject release reload remember remove rename render renew repair
    repeat replace replay report request require reserve reset resolve respond restart restore resume retire
    retry return reuse reverse revoke rewrap rewrite roll rotate round route run sample save scale scan schedule
    search see select send serialize serve set settle show shrink shuffle shut sign signal simulate skip sleep
    sort split stage start state stop store stream strip submit subscribe subtract suggest sum summarize supply
    suspend sweep switch synchronize take tally terminate throttle tokenize touch trace track translate traverse
    treat trigger trim truncate try turn undo unlock unregister unwrap update upgrade upload use validate verify
    visit wait wake walk warn watch wrap write yield
"""
VERBS = frozenset(_VERBS.split())
# "A set of", "Count of" and the like: a noun that looks like a verb.
AFTER_A_NOUN = frozenset({"of", "is", "are", "has", "was"})
CLAUSE = frozenset({
    "whether", "how", "what", "which", "where", "when", "who", "whom", "whose", "those", "that", "such", "of", "by",
    "so",
})  # fmt: skip


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
    """Return True if the signature has an Arrow or numpy type, or a name for one."""
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


def first_words(docstring: str) -> list[str]:
    return re.findall(r"[\w`'-]+", docstring.lower())[:2]


def begins_with_a_verb(docstring: str) -> bool:
    word, following = [*first_words(docstring), "", ""][:2]
    return word in VERBS and following not in AFTER_A_NOUN


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def begins_badly(package: str) -> Iterator[str]:
    """Yield the docstrings of a package's public functions without a verb, and those of the rest that are a clause."""
    for path in sorted(ROOT.glob(package if package.endswith(".py") else f"{package}/**/*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function_name, function in public_functions(tree.body, name):
            docstring = ast.get_docstring(function)
            if docstring and not is_property(function) and not begins_with_a_verb(docstring):
                yield f"{function_name}: {docstring.splitlines()[0]}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef) or (
                isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and is_property(node)
            ):
                docstring = ast.get_docstring(node) or ""
                if set(first_words(docstring)[:1]) & CLAUSE:
                    yield f"{name}.{getattr(node, 'name', '')}: {docstring.splitlines()[0]}"


@pytest.mark.parametrize("package", PACKAGES)
def test_public_docstrings_begin_with_a_verb(package: str) -> None:
    assert list(begins_badly(package)) == [], "a new verb is added to VERBS"


@pytest.mark.parametrize("docstring", ["Return the rows.", "Read it.", "Record that it ended.", "Delete, then commit."])
def test_an_imperative_is_a_verb(docstring: str) -> None:
    assert begins_with_a_verb(docstring)


@pytest.mark.parametrize(
    "docstring",
    ["Whether it is open.", "The rows.", "Records of a batch.", "Count of rows.", "Gives the rows.", "`x`."],
)
def test_nouns_and_clauses_are_no_verbs(docstring: str) -> None:
    assert not begins_with_a_verb(docstring)
