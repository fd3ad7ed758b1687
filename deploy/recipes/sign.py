#!/usr/bin/env python3
"""Signs URLs for a Nuthatch node, using only the standard library.

    NUTHATCH_SIGNING_KEY=<secret> sign.py image <node> <URL> [<expires>]
    NUTHATCH_SIGNING_KEY=<secret> sign.py site <name of the site> <URL> [<expires>]

The secret is the part after the colon of a line in the node's --signing-key-file; <expires> is the
time until which the URL is valid, in seconds since 1970.
"""

import base64
import hashlib
import hmac
import ipaddress
import os
import re
import sys
from urllib.parse import quote


def sign_image(key, node, url, expires=None):
    """The address at which `node` (http://HOST:PORT) serves the image at `url`."""
    target = normalised(url)
    asked = node.rstrip("/") + "/v1/image?url=" + quote(target, safe="")
    return asked + "&" + _parameters(key, target, expires)


def sign_site(key, name, url, expires=None):
    """A URL of the site `name` of the node's settings; path and query are signed unchanged."""
    if not re.fullmatch(r"[!-\"$-~]+", url):
        raise ValueError("not percent-encoded, or with a fragment: " + url)
    authority, target = re.fullmatch(r"https?://([^/?]*)(.*)", url).groups()
    if not target.startswith("/"):
        target = "/" + target
    host = authority.lower().removesuffix(":80") if name == "*" else name
    text = "//" + host + target
    return url + ("&" if "?" in url else "?") + _parameters(key, text, expires)


def _parameters(key, target, expires):
    until = "" if expires is None else str(int(expires))
    text = "nuthatch-signed-url-v1\n" + target + "\n" + until
    code = hmac.new(key.encode(), text.encode(), hashlib.sha256).digest()
    signature = base64.urlsafe_b64encode(code).rstrip(b"=").decode()
    return (f"expires={until}&" if until else "") + "signature=" + signature


def normalised(url):
    """The normalised URL under which the node stores the image."""
    if re.search(r"[\x00-\x1f\x7f]", url):
        raise ValueError("the URL has a control character")
    parts = re.fullmatch(r"(?is)(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", url)
    if not parts:
        raise ValueError("not an absolute http or https URL: " + url)
    scheme, authority, path, query = parts[1].lower(), parts[2], parts[3], parts[4] or ""
    return scheme + "://" + _authority(scheme, authority) + _path(path) + _escaped(query)


def _authority(scheme, authority):
    parts = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]*))?", authority.lower())
    if not parts:
        raise ValueError("no host, or not in ASCII: " + authority)
    host = parts[1].removesuffix(".")
    if host.startswith("["):
        host = f"[{ipaddress.IPv6Address(host[1:-1])}]"
    port = int(parts[2] or 0)
    return host if port in (0, {"http": 80, "https": 443}[scheme]) else f"{host}:{port}"


def _escaped(text):
    """Decodes unreserved characters, and percent-encodes characters that a URL cannot have."""

    def escape(found):
        byte = int(found[1], 16) if found[1] else found[0][0]
        if found[0] == b"%":
            raise ValueError("% must be followed by two hexadecimal digits")
        plain = found[1] and re.fullmatch(rb"[A-Za-z0-9._~-]", bytes([byte]))
        return bytes([byte]) if plain else b"%%%02X" % byte

    illegal = rb"%([0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/?-]"
    return re.sub(illegal, escape, text.encode()).decode()


def _path(path):
    """Normalises the escapes and removes dot segments (RFC 3986 section 5.2.4)."""
    segments = _escaped(path).split("/")[1:] or [""]
    kept = []
    for segment in segments:
        if segment == ".." and kept:
            kept.pop()
        if segment not in (".", ".."):
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in ("image", "site"):
        sys.exit(__doc__)
    sign = sign_image if sys.argv[1] == "image" else sign_site
    print(sign(os.environ["NUTHATCH_SIGNING_KEY"], *sys.argv[2:]))
