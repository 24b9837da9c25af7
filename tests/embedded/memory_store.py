"""An S3 store with one bucket in memory, any of whose answers a test may replace."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from gamelake.objects.store import Location

_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)
_KEY = re.compile("<Key>(.*?)</Key>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Request:
    """A request for an object, or for the list of those under a prefix, which then is its key."""

    method: str
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_listing(self) -> bool:
        """True if it asks for a list."""
        return self.method == "GET" and "list-type" in self.query


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; a body that is cut ends `missing` bytes before its content length says."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0

    @classmethod
    def refusal(cls, status: int, code: str) -> "Answer":
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
        return cls(status, body, {"content-type": "application/xml"})


# Gives the answer to a request, None to close the connection without one; it may have the store answer rightly.
Answering = Callable[[Request, Callable[[], Answer]], Answer | None]


def rightly(_request: Request, answer: Callable[[], Answer]) -> Answer:
    return answer()


@dataclass
class MemoryStore:
    """The store, in the part of S3's protocol that the platform uses.

    Attributes:
        objects: their contents by key.
        answering: gives the answers.
        missing: the status and the code of the error for a key that does not exist.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    answering: Answering = rightly
    missing: tuple[int, str] = (404, "NoSuchKey")

    def __post_init__(self) -> None:
        """Make the lock."""
        self._lock = threading.Lock()

    @contextmanager
    def served(self, bucket: str = "landing") -> Iterator[Location]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *arguments: _Handler(self, bucket, *arguments))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        options = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_ALLOW_HTTP": "true",
        }
        try:
            yield Location(uri=f"s3://{bucket}", options=options)
        finally:
            server.shutdown()
            server.server_close()

    def answer(self, request: Request) -> Answer | None:
        return self.answering(request, lambda: self._answer(request))

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            if request.is_listing:
                return self._listing(request)
            if request.method == "PUT":
                return self._put(request)
            if request.method == "POST":
                return self._delete_all(request)
            if request.method == "DELETE":
                self.objects.pop(request.key, None)
                return Answer(204)
            return self._get(request)

    def _put(self, request: Request) -> Answer:
        if request.headers.get("if-none-match") == "*" and request.key in self.objects:
            return Answer.refusal(412, "PreconditionFailed")
        self.objects[request.key] = request.body
        return Answer(200, b"", {"etag": _etag(request.body)})

    def _delete_all(self, request: Request) -> Answer:
        keys = _KEY.findall(request.body.decode())
        for key in keys:
            self.objects.pop(unescape(key), None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        return Answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())

    def _get(self, request: Request) -> Answer:
        content = self.objects.get(request.key)
        if content is None:
            return Answer.refusal(*self.missing)
        headers = {"etag": _etag(content), "last-modified": format_datetime(_WRITTEN, usegmt=True)}
        wanted = request.headers.get("range", "")
        if not wanted:
            return Answer(200, content, headers)
        first, last = wanted.removeprefix("bytes=").split("-")
        start = int(first) if first else max(0, len(content) - int(last))
        part = content[start : int(last) + 1] if first and last else content[start:]
        if not part:
            return Answer.refusal(416, "InvalidRange")
        headers["content-range"] = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
        return Answer(206, part, headers)

    def _listing(self, request: Request) -> Answer:
        prefix, after = request.key, request.query.get("start-after", "")
        delimiter = request.query.get("delimiter", "")
        found = [key for key in sorted(self.objects) if key.startswith(prefix) and key > after]
        folders = {
            prefix + key.removeprefix(prefix).partition(delimiter)[0] + delimiter
            for key in found
            if delimiter and delimiter in key.removeprefix(prefix)
        }
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_WRITTEN.isoformat()}</LastModified>"
            f"<ETag>{escape(_etag(self.objects[key]))}</ETag><Size>{len(self.objects[key])}</Size></Contents>"
            for key in found
            if not (delimiter and delimiter in key.removeprefix(prefix))
        )
        prefixes = "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)
        )
        return Answer(200, f"<ListBucketResult>{contents}{prefixes}</ListBucketResult>".encode())


def _etag(content: bytes) -> str:
    return f'"{md5(content, usedforsecurity=False).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is two packets, and the second would wait for the first one's receipt.
    disable_nagle_algorithm = True

    def __init__(self, store: MemoryStore, bucket: str, *arguments: object) -> None:
        self._store = store
        self._bucket = bucket
        super().__init__(*arguments)  # type: ignore[arg-type] # as the server calls it

    def _respond(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        key = query.get("prefix", "") if "list-type" in query else unquote(parts.path.removeprefix(f"/{self._bucket}/"))
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self._store.answer(Request(self.command, key, query, headers, body))
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[: len(answer.body) - answer.missing])
            self.close_connection = self.close_connection or bool(answer.missing)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _respond  # noqa: N815 # the base class has named them

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the base class has named it
        """Log nothing."""
