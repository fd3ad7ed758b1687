#!/usr/bin/env python3
"""Converts the common directives of nginx's proxy_cache: convert.py nginx.conf >nuthatch.yaml

Reads each `server` whose `location /` has `proxy_pass`, and the `http` block around it; files of
`include` are not read. Prints the node's configuration. Standard error has a line for each directive
that is not converted, with the reason. Exits with status 1 if no site was found.
"""

import re
import sys

# Directives that need no setting: the node does the same, or needs no such choice.
SAME = set("""proxy_cache proxy_cache_lock proxy_cache_lock_timeout proxy_cache_lock_age proxy_buffers
proxy_cache_revalidate proxy_cache_background_update proxy_cache_use_stale proxy_http_version keepalive_timeout
proxy_buffering proxy_buffer_size proxy_busy_buffers_size proxy_temp_path proxy_max_temp_file_size proxy_redirect
proxy_request_buffering proxy_socket_keepalive proxy_ssl_server_name proxy_ssl_verify proxy_ssl_verify_depth
proxy_intercept_errors server_name server_tokens sendfile tcp_nopush tcp_nodelay keepalive_requests
default_type types_hash_max_size access_log error_log log_format http2 ssl_session_cache ssl_session_timeout
ssl_session_tickets ssl_prefer_server_ciphers root index""".split())
FORWARDED = {"connection", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host",
             "x-forwarded-port", "upgrade", "accept-encoding"}  # set by the node itself
AT_ORIGIN = "mark such responses private or no-store at the origin"
WHY = {
    "proxy_cache_bypass": AT_ORIGIN, "proxy_no_cache": AT_ORIGIN,
    "proxy_cache_key": "the key is the host, the path and the query; see ignore-query",
    "proxy_cache_min_uses": "the first response is stored", "expires": "see client-ttl",
    "proxy_cache_methods": "GET is stored, and serves HEAD", "limit_except": "see methods",
    "client_max_body_size": "bodies of any size are streamed to the origin",
    "gzip": "the node does not compress: compress at the origin", "set": "the node has no variables",
    "rewrite": "the node rewrites nothing: do it at the origin, or keep nginx in front",
    "return": "the node sends no responses of its own: keep nginx in front",
    "if": "the node has no conditions", "include": "the file is not read",
    "auth_basic": "do it at the origin, or keep nginx in front",
    "limit_req": "see connections-per-client and client-share",
}


def tokens(text):
    """The words and the characters ; { } with their lines."""
    pattern = r'#[^\n]*|"((?:\\.|[^"\\])*)"|\'((?:\\.|[^\'\\])*)\'|([{};])|((?:\\.|\$\{\w+\}|[^\s{};])+)'
    for found in re.finditer(pattern, text):
        if found[0].startswith("#"):
            continue
        quoted = found[1] if found[1] is not None else found[2]
        word = quoted if quoted is not None else found[0]
        yield word, text.count("\n", 0, found.start()) + 1, found[3] is not None


def parse(stream):
    """A block as a list of (name, arguments, line, inner block or None)."""
    block, words, first = [], [], 0
    for word, line, is_mark in stream:
        if not is_mark:
            first = first if words else line
            words.append(word)
        elif word == "}":
            return block
        else:
            inner = parse(stream) if word == "{" else None
            if words:
                block.append((words[0], words[1:], first, inner))
            words = []
    return block


def time_of(text):
    return text if re.search(r"[a-z]$", text) else text + "s"


def size_of(text):
    return re.sub(r"(?i)([kmg])$", lambda unit: unit[1].upper() + "iB", text)


def address_of(text):
    return text if ":" in text else f"0.0.0.0:{text}" if text.isdigit() else f"{text}:80"


class Converter:
    def __init__(self, file):
        self.file, self.node, self.sites, self.losses = file, {}, {}, []
        self.upstreams, self.stale = {}, "1d"
        # The ports that nginx serves without TLS.
        self.plain = set()

    def lose(self, line, words, why=None):
        self.losses.append(f"{self.file}:{line}: {' '.join(words)}: "
                           f"{why or WHY.get(words[0], 'not known to the converter')}")

    def http(self, block):
        for name, words, line, inner in block:
            if name == "upstream":
                self.upstream(words[0], inner, line)
            elif name == "proxy_cache_path":
                self.cache_path(words)
        shared = [entry for entry in block if not entry[3] and entry[0] != "proxy_cache_path"]
        for name, words, line, inner in block:
            if name == "server":
                self.server(inner, shared, line)
        plain = [value for value in self.node.get("listen", []) if value in self.plain]
        if plain and "tls-certificate" in self.node:
            self.node["plain-listen"] = plain
            self.node["listen"] = [value for value in self.node["listen"] if value not in plain]

    def cache_path(self, words):
        self.node["cache-dir"] = "/var/cache/nuthatch"
        for word in words:
            key, _, value = word.partition("=")
            if key == "max_size":
                self.node["disk-limit"] = size_of(value)
            elif key == "inactive":
                self.node["age-limit"] = self.stale = time_of(value)

    def upstream(self, name, block, line):
        servers = [words[0] for word, words, _, _ in block if word == "server"]
        self.upstreams[name] = servers[0]
        if len(servers) > 1:
            self.lose(line, ["upstream", name], f"a site has one origin; {servers[0]} is used")
        for word, words, _, _ in block:
            if word == "keepalive":
                self.node["origin-idle-connections"] = words[0]

    def server(self, block, shared, line):
        roots = [inner for name, words, _, inner in block if name == "location" and words == ["/"]]
        if not roots or not any(entry[0] == "proxy_pass" for entry in roots[0]):
            return self.lose(line, ["server"], "no location / with proxy_pass")
        names = [word for name, words, _, _ in block if name == "server_name" for word in words]
        keys = [name for name in names if name not in ("_", "") and not re.search(r"[*~]", name)]
        for name in set(names) - set(keys) - {"_"}:
            self.lose(line, ["server_name", name], 'patterns become the site "*"')
        site = {}
        entries = shared + [entry for entry in block if not entry[3]] + roots[0]
        for entry in entries:
            self.directive(site, *entry)
        if any(entry[0] in ("proxy_no_cache", "proxy_cache_bypass") for entry in entries):
            if site.pop("stores-set-cookie", None):
                self.lose(line, ["proxy_ignore_headers", "Set-Cookie"],
                          "stores-set-cookie would share cookies; proxy_no_cache is not converted")
        for name, words, at, inner in block:
            if name == "location" and words != ["/"]:
                self.lose(at, ["location", *words], "a site has one origin and one set of rules")
        for key in keys if len(keys) == len(names) else keys + ['"*"']:
            self.sites[key] = site

    def directive(self, site, name, words, line, inner):
        if inner is not None:
            self.lose(line, [name, *words])
        elif name == "proxy_pass":
            scheme, _, rest = words[0].partition("://")
            host, slash, path = rest.partition("/")
            site["origin"] = f"{scheme}://{self.upstreams.get(host, host)}{slash if path else ''}{path}"
            if "$" in words[0]:
                self.lose(line, [name, *words], "a variable")
        elif name == "listen" and "quic" in words:
            self.lose(line, [name, *words], "no HTTP/3")
        elif name in ("listen", "ssl_certificate", "ssl_certificate_key"):
            key = {"listen": name, "ssl_certificate": "tls-certificate"}.get(name, "tls-key")
            value = address_of(words[0]) if key == name else words[0]
            if name == "listen" and "ssl" not in words:
                self.plain.add(value)
            listed = self.node.setdefault(key, [])
            listed += [value] if value not in listed or key != name else []
        elif name == "proxy_cache_valid":
            statuses = [word for word in words[:-1] if word != "any"] or ["200", "301", "302"]
            for status in statuses:
                if status in ("200", "301", "302"):
                    site["default-ttl"] = time_of(words[-1])
                else:
                    site.setdefault("negative-ttl", {})[status] = time_of(words[-1])
            if "any" in words:
                self.lose(line, [name, *words], "name the statuses in negative-ttl")
        elif name == "proxy_cache_use_stale" and words != ["off"]:
            site["grace"] = self.stale
            if "updating" in words:
                site["stale-while-revalidate"] = self.stale
        elif name == "proxy_set_header":
            self.header(site, words, line)
        elif name == "proxy_hide_header":
            site.setdefault("remove-response-fields", []).append(words[0])
        elif name == "add_header":
            if "$" in words[1]:
                why = "Cache-Status says the same" if "cache_status" in words[1] else "a variable"
                return self.lose(line, [name, *words], why)
            site.setdefault("set-response-fields", {})[words[0]] = words[1]
        elif name == "proxy_ignore_headers":
            for word in words:
                if word.lower() == "set-cookie":
                    site["stores-set-cookie"] = "on"
                else:
                    self.lose(line, [name, word], "the node obeys it; see ttl-limit and reduce")
        elif name in ("proxy_connect_timeout", "proxy_read_timeout"):
            read = ["origin-first-byte-timeout", "origin-idle-timeout"]
            for key in read if name == "proxy_read_timeout" else ["origin-connect-timeout"]:
                self.node[key] = time_of(words[0])
        elif name == "proxy_ssl_trusted_certificate":
            site["origin-ca"] = words[0]
        elif name not in SAME:
            self.lose(line, [name, *words])

    def header(self, site, words, line):
        name, value = words
        if name.lower() == "host":
            known = {"$host": "client", "$http_host": "client", "$proxy_host": "origin"}
            site["host"] = known.get(value, value)
        elif name.lower() in FORWARDED:
            return
        elif value == "":
            site.setdefault("remove-request-fields", []).append(name)
        elif "$" not in value:
            site.setdefault("set-request-fields", {})[name] = value
        else:
            self.lose(line, ["proxy_set_header", *words], "a variable")


def scalar(value):
    return value if re.fullmatch(r"[\w./:-]+", value) and not value.endswith(":") else "'" + value.replace("'", "''") + "'"


def yaml(settings, indent=""):
    for key, value in settings.items():
        if isinstance(value, list):
            yield f"{indent}{key}: [{', '.join(map(scalar, value))}]"
        elif isinstance(value, dict) and (key == "sites" or indent == "  "):
            yield f"{indent}{key}:"
            yield from yaml(value, indent + "  ")
        elif isinstance(value, dict):
            pairs = ", ".join(f"{name}: {scalar(text)}" for name, text in value.items())
            yield f"{indent}{key}: {{{pairs}}}"
        else:
            yield f"{indent}{key}: {scalar(value)}"


def convert(file):
    """The lines of the configuration, and of what is not converted."""
    with open(file) as text:
        block = parse(tokens(text.read()))
    converter = Converter(file)
    inner = [entry[3] for entry in block if entry[0] == "http"]
    converter.http(inner[0] if inner else block)
    return list(yaml({**converter.node, "sites": converter.sites})), converter


if __name__ == "__main__":
    lines, converter = convert(sys.argv[1])
    print("\n".join(lines))
    print("\n".join(converter.losses), file=sys.stderr)
    sys.exit(0 if converter.sites else 1)
