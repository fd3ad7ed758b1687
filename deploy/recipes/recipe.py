"""What the recipes' trials share: programs on free ports, requests, and a table of outcomes.

The configuration files of a recipe have fixed addresses (the origin is 127.0.0.1:9000); a trial
replaces them. NUTHATCH_NODE names the program; the default is the build of this checkout, then the
one in PATH.
"""

import contextlib
import ctypes
import gzip
import hashlib
import http.client
import http.server
import os
import pathlib
import random
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None)
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent


def node_program():
    """The node to try."""
    built = TOP / ".build/release/nuthatch"
    program = os.environ.get("NUTHATCH_NODE") or (built if built.exists() else "nuthatch")
    found = shutil.which(str(program))
    if not found:
        sys.exit("no nuthatch: build it with deploy/run --version, or set NUTHATCH_NODE")
    return found


def free_port():
    """A port that no outgoing connection is given, because it is below the ephemeral ones."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            return probe.getsockname()[1]


def wait_for_port(port, process=None, seconds=30):
    """Returns when something accepts connections on the port."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        if process and process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended with status {process.returncode}")
        if time.monotonic() > end:
            raise TimeoutError(f"nothing listens on port {port}")
        time.sleep(0.02)


def end_with_parent():
    """Lets the kernel end a program whose trial is killed (PR_SET_PDEATHSIG)."""
    LIBC.prctl(1, signal.SIGTERM)


class Answer:
    """A response; its body is as sent, with any content coding."""

    def __init__(self, response, body):
        self.status, self.fields, self.body = response.status, response.getheaders(), body

    def __getitem__(self, name):
        values = [value for key, value in self.fields if key.lower() == name.lower()]
        return ", ".join(values) if values else None

    @property
    def text(self):
        body = gzip.decompress(self.body) if self["Content-Encoding"] == "gzip" else self.body
        return body.decode()

    @property
    def is_hit(self):
        return "; hit" in (self["Cache-Status"] or "")


def request(port, target, host="127.0.0.1", method="GET", fields=(), body=None, tls=None,
            source="127.0.0.1"):
    """Sends one request on a new connection; field names and values go out as given."""
    kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    connection = kind("127.0.0.1", port, timeout=30, source_address=(source, 0),
                      **({"context": tls} if tls else {}))
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        for name, value in dict(fields).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return Answer(response, response.read())
    finally:
        connection.close()


class Origin:
    """A web server whose `respond(request)` returns (status, fields, body), and its log."""

    def __init__(self, respond, port=0):
        origin, self.requests = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                length = int(self.headers.get("Content-Length") or 0)
                self.sent_body = self.rfile.read(length)
                origin.requests.append((self.command, self.path, dict(self.headers.items())))
                status, fields, body = respond(self)
                self.send_response(status)
                for name, value in fields:
                    self.send_header(name, value)
                if status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD" and status != 304:
                    self.wfile.write(body)

            do_GET = do_HEAD = do_POST = do_PURGE = do_BAN = handle_any

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            request_queue_size = 512

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, path):
        return sum(1 for _, target, _ in self.requests if target == path)


class Trial:
    """Programs and files of one trial, and its rows; used with `with`."""

    def __init__(self, name):
        self.name, self.failed, self.processes = name, 0, []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"recipe-{name}-"))
        # Servers that drop privileges must be able to enter it.
        self.folder.chmod(0o755)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self.processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            if process.poll() is None:
                process.kill()
        if kind or self.failed:
            for log in sorted(self.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
        shutil.rmtree(self.folder, ignore_errors=True)
        if not kind and self.failed:
            sys.exit(f"{self.name}: {self.failed} failed")

    def check(self, label, passed, detail=""):
        """Prints a row; a failed one makes the trial fail."""
        self.failed += not passed
        print(f"{self.name:10} {'ok  ' if passed else 'FAIL'} {label}"
              + (f": {detail}" if detail else ""), flush=True)

    def note(self, text):
        print(f"{self.name:10} {text}", flush=True)

    def configuration(self, path, replaced):
        """Writes a copy of a recipe's file with other addresses, each of which it must have."""
        text = (HERE / path).read_text()
        for old, new in replaced.items():
            if old not in text:
                raise ValueError(f"{path} does not contain {old}")
            text = text.replace(old, new)
        copy = self.folder / pathlib.Path(path).name
        copy.write_text(text)
        return copy

    def start(self, *words, port=None, log=None, **options):
        """Starts a program, and waits for its port."""
        name = log or pathlib.Path(words[0]).name
        with open(self.folder / f"{name}.log", "ab") as output:
            process = subprocess.Popen(
                [str(word) for word in words], stdout=output, stderr=output,
                preexec_fn=end_with_parent, **options)
        self.processes.append(process)
        if port:
            wait_for_port(port, process)
        return process

    def node(self, *flags, config=None):
        """Starts a node on free ports: its port for clients, and its admin port."""
        port, admin = free_port(), free_port()
        words = [node_program(), "serve"] + (["--config", config] if config else [])
        words += ["--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin}"]
        self.start(*words, *flags, port=port)
        return port, admin


def digest(body):
    return hashlib.sha256(body).hexdigest()[:12]
