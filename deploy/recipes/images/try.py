#!/usr/bin/env python3
"""Purges of every size of an image behind imgproxy, Next.js and thumbor: images/try.py [PYTHON]

imgproxy and Next.js are stand-ins that answer the same URLs. thumbor is run if PYTHON has it.
"""

import base64
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from recipe import HERE, TOP, Origin, Trial, free_port, request  # noqa: E402


def purge(admin, url):
    body = json.dumps({"targets": [{"url": url}], "wait": "all"}).encode()
    return request(admin, "/admin/v1/purges", method="POST", body=body)


def node(trial, config, behind):
    return trial.node(config=trial.configuration(f"images/{config}.yaml", {
        "listen: 127.0.0.1:8080\n": "", "127.0.0.1:9000": f"127.0.0.1:{behind}",
        "/var/cache/nuthatch": str(trial.folder / "cache")}))


def sizes(trial, label, port, admin, host, targets, original, other):
    """Checks that a purge of `original` covers all `targets`, and not `other`."""
    for target in [*targets, other]:
        request(port, target, host)
    stored = [request(port, target, host) for target in [*targets, other]]
    trial.check(f"{label}: {len(targets)} sizes are stored",
                all(answer.status == 200 and answer.is_hit for answer in stored),
                [answer.status for answer in stored])
    receipt = purge(admin, original)
    after = [request(port, target, host).is_hit for target in [*targets, other]]
    trial.check(f"{label}: a purge of {original} covers them, and no other image",
                receipt.status == 200 and after == [False] * len(targets) + [True], after)


def stand_in(label, config, host, targets, original, other):
    with Trial(label) as trial:
        fields = [("Cache-Control", "max-age=31536000, public"), ("Content-Type", "image/webp"),
                  ("Vary", "Accept")]
        origin = Origin(lambda request: (200, fields, request.path.encode()))
        port, admin = node(trial, config, origin.port)
        sizes(trial, f"stand-in for {label}", port, admin, host, targets, original, other)


def thumbor(python):
    version = subprocess.run([python, "-c", "import thumbor; print(thumbor.__version__)"],
                             capture_output=True, text=True)
    if version.returncode:
        return print(f"thumbor    skipped: {python} has no thumbor")
    with Trial("thumbor") as trial:
        picture = (TOP / "deploy/compose/images/seeds.png").read_bytes()
        fields = [("Content-Type", "image/png"), ("Cache-Control", "max-age=60")]
        photos = Origin(lambda request: (200, fields, picture))
        behind = free_port()
        conf = trial.configuration("images/thumbor.conf", {})
        trial.start(python, "-m", "thumbor.server", "--conf", conf, "--ip", "127.0.0.1",
                    "--port", behind, port=behind, log="thumbor")
        port, admin = node(trial, "thumbor", behind)
        at = f"127.0.0.1:{photos.port}"
        made = [f"/unsafe/{size}/{at}/cat.png" for size in ("60x60", "90x0", "fit-in/40x40")]
        sizes(trial, f"thumbor {version.stdout.strip()}", port, admin, "img.example.com", made,
              f"http://{at}/cat.png", f"/unsafe/60x60/{at}/dog.png")
        trial.check("thumbor fetched the original again for each size",
                    photos.count("/cat.png") == 2 * len(made), photos.count("/cat.png"))


def loaded(url):
    """The path of imgproxy's URL by the loader for next/image, in a list; empty without Node.js."""
    if not shutil.which("node"):
        return []
    script = (f"import make from '{HERE}/clients/image-loader.mjs';"
              f"console.log(make({{src: '{url}', width: 640}}))")
    made = subprocess.run(["node", "--input-type=module", "-e", script],
                          capture_output=True, text=True, check=True)
    return [made.stdout.strip().removeprefix("https://img.example.com")]


if __name__ == "__main__":
    cat = "https://photos.example.com/cat.jpg"
    coded = base64.urlsafe_b64encode(cat.encode()).rstrip(b"=").decode()
    stand_in("imgproxy", "imgproxy", "img.example.com", [
        f"/signature1/rs:fit:300:200/plain/{cat}@webp",
        f"/signature2/rs:fit:600:400/plain/{urllib.parse.quote(cat, safe='')}@webp",
        f"/signature3/w:900/{coded}.avif", *loaded(cat),
    ], cat, "/signature4/w:900/plain/https://photos.example.com/dog.jpg@webp")
    stand_in("next.js", "nextjs", "www.example.com", [
        f"/_next/image?url=%2Fcat.jpg&w={width}&q=75" for width in (640, 1080, 1920)
    ], "https://www.example.com/cat.jpg", "/_next/image?url=%2Fdog.jpg&w=640&q=75")
    thumbor(sys.argv[1] if len(sys.argv) > 1 else sys.executable)
