#!/usr/bin/env python3
"""Checks the converter for nginx: what it makes of the recipe's own configuration and of two others is
accepted by the node, and has the settings it should have; and it names what it leaves out.
"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from convert import convert  # noqa: E402
from recipe import Trial, node_program  # noqa: E402

# What the converter must print, besides other lines, and what it must name as not converted.
EXPECTED = {
    "nginx.conf": (
        ["cache-dir: /var/cache/nuthatch", "disk-limit: 1GiB", "age-limit: 60m", "listen: [127.0.0.1:8000]",
         "origin: http://127.0.0.1:9000", "host: client", "default-ttl: 10m", "negative-ttl: {404: 1m}",
         "grace: 60m", "stale-while-revalidate: 60m", "remove-response-fields: [X-Powered-By]"],
        ["client_max_body_size", "add_header X-Cache-Status"]),
    "samples/blog.conf": (
        ["listen: [0.0.0.0:443, '[::]:443']", "tls-certificate: [/etc/nginx/tls/blog.pem]",
         "tls-key: [/etc/nginx/tls/blog.key]", "blog.example.com:", "www.blog.example.com:",
         "origin: http://10.0.0.5:8080", "default-ttl: 1h",
         "negative-ttl: {404: 30s, 410: 30s}", "origin-connect-timeout: 2s", "age-limit: 7d",
         "set-response-fields: {X-Frame-Options: SAMEORIGIN}"],
        ["proxy_cache_bypass", "proxy_no_cache", "proxy_ignore_headers Cache-Control", "proxy_ignore_headers Set-Cookie", "location /wp-admin/",
         "upstream wordpress", "gzip", "location / with proxy_pass"]),
    "samples/assets.conf": (
        ['"*":', "origin: https://bucket.example.net/assets", "host: bucket.example.net",
         "origin-ca: /etc/ssl/storage.pem", "disk-limit: 20GiB", "default-ttl: 30d",
         "remove-request-fields: [Authorization, Cookie]", "set-request-fields: {X-Api-Version: 2}",
         "remove-response-fields: [x-amz-request-id, x-amz-id-2]", "grace: 90d"],
        ["proxy_cache_key", "limit_except", "proxy_cache_min_uses", "expires"]),
}


def main():
    with Trial("convert") as trial:
        for name, (settings, losses) in EXPECTED.items():
            lines, converter = convert(str(HERE / name))
            text = "\n".join(lines)
            have = {line.strip() for line in lines}
            lacking = [line for line in settings if line not in have]
            lost = "\n".join(converter.losses)
            lacking += [f"not named: {word}" for word in losses if word not in lost]
            # Files that a configuration names are not here.
            for key in ("tls-certificate", "tls-key", "origin-ca"):
                text = "\n".join(line for line in text.splitlines() if not line.strip().startswith(key))
            file = trial.folder / "nuthatch.yaml"
            file.write_text(text + "\n")
            checked = subprocess.run([node_program(), "check-config", "--config", file],
                                     capture_output=True, text=True)
            trial.check(name, not lacking and checked.returncode == 0,
                        "; ".join(lacking) + checked.stderr if lacking or checked.returncode
                        else f"{len(settings)} settings, {len(converter.losses)} directives named")


if __name__ == "__main__":
    main()
