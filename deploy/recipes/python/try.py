#!/usr/bin/env python3
"""Publishes an article in Flask and in Django behind a node: the old page is a hit, the purge by tag
reaches every page with the article, and the next request is one fetch: python/try.py [PYTHON]

PYTHON is an interpreter that has django and flask; an application that it lacks is skipped.
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from recipe import Trial, free_port, request  # noqa: E402

HOST = "www.example.com"
OVERVIEW, FIRST, SECOND = "/articles/", "/articles/1", "/articles/2"


def publish(name, python, command):
    version = subprocess.run(
        [python, "-c", f"import {name}, importlib.metadata as m; print(m.version('{name}'))"],
        capture_output=True, text=True)
    if version.returncode:
        return print(f"{name:10} skipped: {python} has no {name}")
    with Trial(name) as trial:
        behind = free_port()
        port, admin = trial.node(config=trial.configuration("python/nuthatch.yaml", {
            "listen: 127.0.0.1:8080\n": "", "/var/cache/nuthatch": str(trial.folder / "cache"),
            "127.0.0.1:9000": f"127.0.0.1:{behind}"}))
        environment = {**os.environ, "NUTHATCH_ADMIN": f"http://127.0.0.1:{admin}",
                       "DATABASE": str(trial.folder / "articles.sqlite3"),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        trial.start(python, *command(behind), port=behind, log=name, env=environment, cwd=HERE)

        def get(path):
            return request(port, path, HOST)

        first = [get(path).text for path in (OVERVIEW, FIRST, SECOND)]
        hits = [get(path).is_hit for path in (OVERVIEW, FIRST, SECOND)]
        trial.check(f"{version.stdout.strip()}: pages are stored",
                    first == ["First, Second", "First", "Second"] and all(hits))
        sent = request(port, FIRST, HOST, "POST", body=b"Changed")
        after = [get(path) for path in (OVERVIEW, FIRST, SECOND)]
        trial.check("publish, purge by tag, refetch",
                    sent.status == 204
                    and [answer.text for answer in after] == ["Changed, Second", "Changed", "Second"],
                    f"{sent.status}, {[answer.text for answer in after]}")
        trial.check("the other article is still a hit",
                    [answer.is_hit for answer in after] == [False, False, True])
        trial.check("and the new pages are stored", all(get(path).is_hit for path in (OVERVIEW, FIRST)))


if __name__ == "__main__":
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    publish("flask", python, lambda port: ["-m", "flask", "--app", "flask_site", "run", "--port", port])
    publish("django", python, lambda port: ["django_site.py", "runserver", f"127.0.0.1:{port}",
                                            "--noreload", "--skip-checks"])
