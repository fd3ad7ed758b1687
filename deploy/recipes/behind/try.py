#!/usr/bin/env python3
"""A node behind nginx, HAProxy and Hitch: which client, scheme and host the origin and purges see.

Clients have the addresses 127.0.0.2 and 127.0.0.3, of which only the latter may purge; the proxies
connect from 127.0.0.1. A program that is not installed is skipped.
"""

import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from recipe import Origin, Trial, free_port, request  # noqa: E402

HOST = "www.example.com"


def found(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")


def respond(request):
    body = json.dumps(dict(request.headers.items())).encode()
    return 200, [("Cache-Control", "max-age=60"), ("Content-Type", "application/json")], body


def certificate(trial, replaced):
    """Makes a certificate with its key, in place of the file that a configuration names."""
    pem = trial.folder / "site.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-noenc", "-days", "7", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}",
         "-keyout", pem, "-out", trial.folder / "certificate.pem"], check=True, capture_output=True)
    pem.write_text(pem.read_text() + (trial.folder / "certificate.pem").read_text())
    replaced["/etc/haproxy/site.pem"] = replaced["/etc/hitch/site.pem"] = str(pem)


def front(name, config, setting, address, secure=False):
    """Runs one front: `setting` is the node's for it, `address` where it listens."""
    program = found(name)
    if not program:
        return print(f"{name:10} skipped: not installed")
    with Trial(name) as trial:
        version = subprocess.run([program, "-V" if name == "hitch" else "-v"], capture_output=True, text=True)
        trial.note((version.stdout + version.stderr).splitlines()[0])
        origin, port = Origin(respond), free_port()
        behind = {"listen: 127.0.0.1:8080\n": "", "127.0.0.1:9000": f"127.0.0.1:{origin.port}",
                  "forwarded-from: [127.0.0.1]": f"{setting}: [127.0.0.1]"}
        node, _ = trial.node(config=trial.configuration("behind/nuthatch.yaml", behind))
        replaced = {address: address.replace(address.split(":")[-1], str(port)),
                    "127.0.0.1]:8080" if name == "hitch" else "127.0.0.1:8080":
                    f"127.0.0.1]:{node}" if name == "hitch" else f"127.0.0.1:{node}"}
        if secure:
            names = {}
            certificate(trial, names)
            replaced["/etc/hitch/site.pem" if name == "hitch" else "/etc/haproxy/site.pem"] = (
                names["/etc/hitch/site.pem"])
        if name == "nginx":
            replaced["/var/log/nginx/error.log"] = str(trial.folder / "error.log")
            replaced["/run/nginx.pid"] = str(trial.folder / "pid")
        file = trial.configuration(config, replaced)
        words = {"nginx": ["-c", file, "-g", "daemon off;"], "haproxy": ["-f", file],
                 "hitch": [f"--config={file}"] + (["--user=nobody"] if os.geteuid() == 0 else [])}[name]
        trial.start(program, *words, port=port, log=name)
        check(trial, origin, port, secure, setting)


def check(trial, origin, port, secure, setting):
    tls = None
    if secure:
        tls = ssl.create_default_context(cafile=trial.folder / "certificate.pem")
        tls.check_hostname = False

    def ask(target, source, method="GET", **fields):
        return request(port, target, HOST, method, fields, tls=tls, source=source)

    claimed = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "gopher",
               "X-Forwarded-Host": "evil.example"}
    first = ask("/page", "127.0.0.2", **claimed)
    seen = {name.lower(): value for name, value in json.loads(first.text).items()}
    # Behind the PROXY protocol the scheme is that of the connection to the node.
    scheme = "https" if secure and setting == "forwarded-from" else "http"
    trial.check("the origin sees the client's address, the scheme and the host",
                (seen.get("x-forwarded-for"), seen.get("x-forwarded-proto"), seen.get("x-forwarded-host"), seen["host"])
                == ("127.0.0.2", scheme, HOST, HOST),
                f"for {seen.get('x-forwarded-for')}, {seen.get('x-forwarded-proto')}, "
                f"{seen.get('x-forwarded-host')}")
    trial.check("the second request is a hit", ask("/page", "127.0.0.2").is_hit)
    refused, purged = (ask("/page", f"127.0.0.{last}", "PURGE").status for last in (2, 3))
    trial.check("only the client that may purge can", (refused, purged) == (403, 200),
                f"{refused}, {purged}")
    trial.check("and then the page is fetched again",
                not ask("/page", "127.0.0.2").is_hit and origin.count("/page") == 2)


if __name__ == "__main__":
    front("nginx", "nginx/nginx-front.conf", "forwarded-from", "127.0.0.1:8000")
    front("haproxy", "behind/haproxy.cfg", "trusted-proxy", "127.0.0.1:8000")
    front("haproxy", "behind/haproxy-tls.cfg", "forwarded-from", "127.0.0.1:8443", secure=True)
    front("hitch", "behind/hitch.conf", "trusted-proxy", "[127.0.0.1]:8443", secure=True)
