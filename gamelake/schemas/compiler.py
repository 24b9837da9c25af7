"""Compiling of Protobuf sources, as text or as descriptors, to descriptors by protoc."""

import base64
import binascii
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from gamelake.model.errors import SchemaError, UnknownMessageError

ROOT_FILE = "schema.proto"
LONGEST_NAME = 1_000
_DESCRIPTORS = "known.binpb"
_MOST_FILES = 1_000
_PROTOC_SECONDS = 60
# protoc separates folders by `:` and what they stand for by `=`.
_NAME = re.compile(r"[^\x00-\x1f\x7f:;=\\]+")
# Written by protoc's logging library before and between the problems of the schema.
_LOGGING = re.compile(r"WARNING: All log messages|[IWEF]\d{4} ")
_CONFLUENT = "confluent/"
_CONFLUENT_MODULES = ("meta_pb2", "type.decimal_pb2", "type.variant_pb2", "types.decimal_pb2")


def compile_sources(sources: Mapping[str, str], root: str = ROOT_FILE) -> FileDescriptorSet:
    """Compile the file `root` and its imports.

    Imports come from `sources`, or from the files that serializers leave out: `google/protobuf`, `google/type`,
    `confluent`.

    Args:
        sources: by the name that imports use: the text of a file, or its descriptor in base64, as Confluent's Python
            serializer registers it.
        root: the name of the file to compile.

    Returns:
        The files in dependency order, the root last.

    Raises:
        SchemaError: the sources do not compile; with protoc's message.
    """
    if len(sources) > _MOST_FILES:
        raise SchemaError(f"the schema has {len(sources)} files, more than {_MOST_FILES}")
    for name in sources:
        _check_name(name)
    with tempfile.TemporaryDirectory() as folder, as_file(files("grpc_tools") / "_proto") as well_known:
        names = _write_sources(Path(folder), sources)
        output = Path(folder) / "descriptors.binpb"
        # In another process: protoc writes to the C level's stderr, and its crash must not be this process's.
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", *(f"-I{name}={path}" for path, name in names)]
        google_type = Path(str(files("google.type") / "date.proto")).parent
        command += [f"-I{well_known}", f"-Igoogle/type={google_type}"]
        command += [f"--descriptor_set_in={Path(folder) / _DESCRIPTORS}", "--include_imports", "--include_source_info"]
        command += [f"--descriptor_set_out={output}", root]
        try:
            done = subprocess.run(  # noqa: S603 # our own arguments
                command,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                cwd=folder,
                timeout=_PROTOC_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise SchemaError(f"the schema does not compile: protoc took more than {_PROTOC_SECONDS} s") from error
        if done.returncode != 0:
            raise SchemaError(f"the schema does not compile: {_first_problem(done.stderr, names)}")
        return _without_others_comments(_decoded(output.read_bytes()))


def _check_name(name: str) -> None:
    """Check that protoc takes a name: it wants none with `.` or `..`. It is never a path on this machine."""
    shown = repr(name[:100])
    if len(name) > LONGEST_NAME:
        raise SchemaError(f"the schema imports {shown}..., a name of more than {LONGEST_NAME} characters")
    if {"", ".", ".."} & set(name.split("/")):
        raise SchemaError(f"the schema imports {shown}, which is outside its own folder")
    if not _NAME.fullmatch(name) or not _is_text(name):
        raise SchemaError(f"the schema imports {shown}, which is not a file name")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write_sources(folder: Path, sources: Mapping[str, str]) -> list[tuple[Path, str]]:
    """Write all sources under names of our own. Return the path of each text, with the name that imports use."""
    names, known = [], FileDescriptorSet()
    for number, (name, text) in enumerate(sources.items()):
        if not _is_text(text):
            raise SchemaError(f"{name} has invalid characters (lone surrogates)")
        descriptor = _descriptor(text)
        if descriptor is None:
            names.append((folder / f"{number}.text", name))
            names[-1][0].write_text(text, encoding="utf-8", newline="")
        else:
            descriptor.name = name
            known.file.append(descriptor)
    imports = {each for file in known.file for each in file.dependency}
    if any(each.startswith(_CONFLUENT) for each in imports) or any(_CONFLUENT in text for text in sources.values()):
        known.file.extend(file for file in _confluent_files() if file.name not in sources)
    (folder / _DESCRIPTORS).write_bytes(known.SerializeToString())
    return names


def _descriptor(text: str) -> FileDescriptorProto | None:
    """Return the descriptor that a text encodes in base64; None for any other text."""
    try:
        content = base64.b64decode(text, validate=True)
        return FileDescriptorProto.FromString(content) if content else None
    except (binascii.Error, ValueError, DecodeError):
        return None


def _confluent_files() -> Iterator[FileDescriptorProto]:
    # Loading the client takes a second, so it is loaded only for schemas that import its files.
    for name in _CONFLUENT_MODULES:
        module = import_module(f"confluent_kafka.schema_registry.confluent.{name}")
        yield FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def _decoded(content: bytes) -> FileDescriptorSet:
    try:
        return FileDescriptorSet.FromString(content)
    except DecodeError as error:
        raise SchemaError("the schema declares messages inside each other too deeply") from error


def _without_others_comments(descriptors: FileDescriptorSet) -> FileDescriptorSet:
    """Only the root's comments become columns' comments; those of the well-known types are longer than most schemas."""
    for imported in list(descriptors.file)[:-1]:
        imported.ClearField("source_code_info")
    return descriptors


def _first_problem(stderr: str, names: list[tuple[Path, str]]) -> str:
    lines = [line for line in stderr.splitlines() if line.strip() and ": warning: " not in line]
    problem = next((line for line in lines if not _LOGGING.match(line)), "protoc gave no reason")
    for path, name in names:
        problem = problem.replace(str(path), name)
    return problem


def message_at(descriptors: FileDescriptorSet, index: tuple[int, ...]) -> Descriptor:
    """Return the message that a Confluent message index names, counted in the last file of the set.

    Raises:
        UnknownMessageError: the schema has no message there.
        SchemaError: the Protobuf library can't load the schema.
    """
    root = descriptors.file[-1]
    messages, path = root.message_type, [root.package] if root.package else []
    for step in index:
        if step >= len(messages):
            raise UnknownMessageError(f"the schema has no message at index {list(index)}")
        path.append(messages[step].name)
        messages = messages[step].nested_type
    pool = DescriptorPool()
    try:
        for file in descriptors.file:
            pool.Add(_with_json_names(file))
        return pool.FindMessageTypeByName(".".join(path))
    except (TypeError, KeyError) as error:
        raise SchemaError(f"the Protobuf library can't load the schema: {error}") from error


def _with_json_names(file: FileDescriptorProto) -> FileDescriptorProto:
    """The same file; in messages where two fields have one name in JSON, as proto2 allows, they get their own names.

    No column is named by them, and the Protobuf library refuses them.
    """
    clashing = [message for message in all_messages(file.message_type) if _clashes(message)]
    if not clashing:
        return file
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    for message in all_messages(copy.message_type):
        if _clashes(message):
            for field in message.field:
                field.json_name = field.name
    return copy


def all_messages(messages: Iterable[DescriptorProto]) -> Iterator[DescriptorProto]:
    """Yield all messages of a file, with the nested ones."""
    left = list(messages)
    while left:
        message = left.pop()
        left.extend(message.nested_type)
        yield message


def _clashes(message: DescriptorProto) -> bool:
    names = Counter(field.json_name for field in message.field if field.json_name)
    return any(count > 1 for count in names.values())
