"""Compiling of Protobuf sources to descriptors by protoc."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from gamelake.model.errors import SchemaError

ROOT_FILE = "schema.proto"


def compile_sources(sources: Mapping[str, str], root: str = ROOT_FILE) -> FileDescriptorSet:
    """Compile the file `root` and its imports from `sources` (path to text) or the well-known types.

    Returns:
        The files in dependency order, the root last.

    Raises:
        SchemaError: the sources do not compile; with protoc's message.
    """
    with tempfile.TemporaryDirectory() as folder, as_file(files("grpc_tools") / "_proto") as well_known:
        for name, text in sources.items():
            _write_source(Path(folder), name, text)
        output = Path(folder) / "descriptors.binpb"
        # In another process: protoc writes to the C level's stderr, and its crash must not be this process's.
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{well_known}"]
        command += ["--include_imports", "--include_source_info", f"--descriptor_set_out={output}", root]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 # our own arguments
        if done.returncode != 0:
            raise SchemaError(f"the schema does not compile: {_first_problem(done.stderr)}")
        return _without_others_comments(FileDescriptorSet.FromString(output.read_bytes()))


def _without_others_comments(descriptors: FileDescriptorSet) -> FileDescriptorSet:
    """Only the root's comments become columns' comments; those of the well-known types are longer than most schemas."""
    for imported in list(descriptors.file)[:-1]:
        imported.ClearField("source_code_info")
    return descriptors


def _write_source(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise SchemaError(f"the schema imports '{name}', which is outside its own folder")
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _first_problem(stderr: str) -> str:
    lines = [line for line in stderr.splitlines() if line.strip() and "warning" not in line]
    return lines[0] if lines else "protoc gave no reason"


def message_at(descriptors: FileDescriptorSet, index: tuple[int, ...]) -> Descriptor:
    """The message that a Confluent message index names, counted in the last file of the set.

    Raises:
        SchemaError: the schema has no message there.
    """
    pool = DescriptorPool()
    for file in descriptors.file:
        pool.Add(file)
    root = descriptors.file[-1]
    messages, path = root.message_type, [root.package] if root.package else []
    for step in index:
        if step >= len(messages):
            raise SchemaError(f"the schema has no message at index {list(index)}")
        path.append(messages[step].name)
        messages = messages[step].nested_type
    return pool.FindMessageTypeByName(".".join(path))
