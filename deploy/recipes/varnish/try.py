#!/usr/bin/env python3
"""One site behind Varnish with default.vcl and behind a node with nuthatch.yaml: what is stored, what
clients get, and which purges both understand.
"""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from recipe import Origin, Trial, free_port, request  # noqa: E402

HOST = "www.example.com"


def respond(request):
    path, _, query = request.path.partition("?")
    if path == "/missing":
        return 404, [], b"nothing\n"
    fields = [("Cache-Control", "max-age=60"), ("Cache-Tags", "page a-7"), ("X-Powered-By", "a program"),
              ("Content-Type", "text/html")]
    if path == "/account":
        fields = [("Set-Cookie", "session=1"), ("Content-Type", "text/html")]
    if path == "/private":
        fields[0] = ("Cache-Control", "private")
    if path == "/coded":
        coding = "gzip" if "gzip" in request.headers.get("Accept-Encoding", "") else "none"
        return 200, fields + [("Vary", "Accept-Encoding")], f"coding {coding}".encode()
    return 200, fields, f"{path} {query}".encode()


def main():
    program = shutil.which("varnishd", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        return print("varnish    skipped: not installed")
    with Trial("varnish") as trial:
        version = subprocess.run([program, "-V"], capture_output=True, text=True)
        trial.note((version.stdout + version.stderr).splitlines()[0])
        origins = {"varnish": Origin(respond), "node": Origin(respond)}
        vcl = trial.configuration("varnish/default.vcl",
                                  {'"9000"': f'"{origins["varnish"].port}"'})
        ports = {"varnish": free_port()}
        trial.start(program, "-F", "-f", vcl, "-a", f"127.0.0.1:{ports['varnish']}", "-s", "malloc,64m",
                    "-n", trial.folder / "varnish", port=ports["varnish"], log="varnish")
        ports["node"], _ = trial.node(config=trial.configuration("varnish/nuthatch.yaml", {
            "listen: 127.0.0.1:8000\n": "", "/var/cache/nuthatch": str(trial.folder / "cache"),
            "127.0.0.1:9000": f"127.0.0.1:{origins['node'].port}"}))

        def both(label, *requests, known=""):
            """Sends the same requests to both, and compares statuses, bodies and origin requests."""
            seen = {}
            for server, port in ports.items():
                before = len(origins[server].requests)
                # BAN and PURGE must not be among them.
                answers = [request(port, target, HOST, method, fields)
                           for method, target, fields in requests]
                sent = [method for method, _, _ in origins[server].requests[before:]]
                bodies = [answer.body for (method, _, _), answer in zip(requests, answers)
                          if method == "GET"]
                seen[server] = ([answer.status for answer in answers], bodies, sent)
            if known:
                trial.check(f"{label}: differs as documented", seen["varnish"] != seen["node"], known)
            else:
                trial.check(label, seen["varnish"] == seen["node"],
                            f"{seen['node'][0]}, {len(seen['node'][2])} requests at the origin"
                            + ("" if seen["varnish"] == seen["node"] else f", Varnish {seen['varnish']}"))

        get = lambda target, **fields: ("GET", target, fields)  # noqa: E731
        both("a page, twice", get("/page"), get("/page"))
        both("HEAD of a stored page", ("HEAD", "/page", {}))
        both("campaign parameters", get("/list?page=2&utm_source=x"), get("/list?page=2"),
             get("/list?utm_medium=y&page=2"))
        both("404 without a lifetime, twice", get("/missing"), get("/missing"))
        both("Set-Cookie, twice", get("/account"), get("/account"))
        both("private, twice", get("/private"), get("/private"))
        gzip = {"Accept-Encoding": "gzip, deflate, br"}
        both("Accept-Encoding in two forms", ("GET", "/coded", gzip), ("GET", "/coded", gzip),
             ("GET", "/coded", {"Accept-Encoding": "gzip"}), known="br is a form of its own at the node")
        both("PURGE of a URL", get("/one"), ("PURGE", "/one", {}), get("/one"))
        both("BAN by tag", get("/two"), ("BAN", "/", {"Cache-Tags": "a-7"}), get("/two"))
        cookie = {"Cookie": "theme=dark"}
        both("a Cookie and max-age", ("GET", "/page3", cookie), ("GET", "/page3", cookie),
             known="the node stores responses with a lifetime: mark personal ones private")
        fields = {server: {name.lower() for name, _ in request(port, "/page", HOST).fields}
                  for server, port in ports.items()}
        trial.check("Cache-Tags and X-Powered-By reach no client",
                    not any({"cache-tags", "x-powered-by"} & names for names in fields.values()))
        for server, other in (("varnish", "node"), ("node", "varnish")):
            trial.note(f"headers only from {server}: {', '.join(sorted(fields[server] - fields[other]))}")


if __name__ == "__main__":
    main()
