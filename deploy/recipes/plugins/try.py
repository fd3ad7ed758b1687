#!/usr/bin/env python3
"""Sends a node the requests of WordPress', Drupal's and Magento's purges, as their sources make them.

The plug-ins themselves are not run. Their versions: Proxy Cache Purge 5.5 (varnish-http-purge), W3
Total Cache 2.10 (Varnish_Flush), varnish_purge 8.x-2.x, purge_purger_http 8.x-1.x.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from recipe import Origin, Trial, request  # noqa: E402

HOST = "www.example.com"


class Site:
    """A node in front of pages with tags; each page says how often it was made."""

    def __init__(self, trial, config, field, pages, separator):
        self.pages, self.made = pages, {}

        def respond(request):
            self.made[request.path] = number = self.made.get(request.path, 0) + 1
            tags = separator.join(pages.get(request.path, []))
            fields = [("Cache-Control", "max-age=3600"), (field, tags)]
            return 200, fields, f"{request.path} {number}".encode()

        self.trial, self.origin = trial, Origin(respond)
        self.port, _ = trial.node(config=trial.configuration(config, {
            "listen: 127.0.0.1:8080\n": "", "127.0.0.1:9000": f"127.0.0.1:{self.origin.port}",
            "/var/cache/nuthatch": str(trial.folder / pathlib.Path(config).stem)}))

    def purges(self, label, method, target, fields, expected, host=HOST, status=200):
        """Checks that a request of a plug-in purges exactly the `expected` pages."""
        for path in self.pages:
            request(self.port, path, HOST)
        before = dict(self.made)
        answer = request(self.port, target, host, method, fields)
        for path in self.pages:
            request(self.port, path, HOST)
        gone = {path for path in self.pages if self.made[path] != before[path]}
        leaked = [entry for entry in self.origin.requests if entry[0] not in ("GET", "HEAD")]
        self.trial.check(f"{label}: {method} {target}",
                         answer.status == status and gone == set(expected) and not leaked,
                         f"{answer.status}, purged {sorted(gone) or 'nothing'}")


WORDPRESS = {
    "/": ["site-1", "home", "blog", "archive"],
    "/hello/": ["site-1", "p-1", "pt-post", "a-1", "t-7"],
    "/other/": ["site-1", "p-12", "pt-post", "a-2"],
    "/feed/": ["site-1", "feed"],
    "/wp-content/themes/x/style.css": [],
    "/?p=1": [],
}
DRUPAL = {
    "/node/1": ["node:1", "node_view", "rendered"],
    "/node/12": ["node:12", "node_view", "rendered"],
    "/articles": ["node_list:article", "config:views.view.articles", "rendered"],
    "/sites/default/files/a.png": [],
}


def wordpress():
    with Trial("wordpress") as trial:
        site = Site(trial, "plugins/wordpress.yaml", "X-Cache-Tags", WORDPRESS, ",")
        capability = {field.lower(): value for _, _, fields in [
            request(site.port, "/", HOST) and site.origin.requests[0]]
            for field, value in fields.items()}.get("surrogate-capability")
        trial.check("the origin is told that tags are supported",
                    capability == 'vhp="Surrogate/1.0 tags/1"', capability)
        # purge_url: Host, X-Purge-Method and the User-Agent of WordPress.
        agent = {"User-Agent": "WordPress/6.7; http://www.example.com", "Connection": "close"}
        url = {"X-Purge-Method": "default", **agent}
        site.purges("Proxy Cache Purge, a post", "PURGE", "/hello/", url, ["/hello/"])
        site.purges("Proxy Cache Purge, a short link", "PURGE", "/?p=1", url, ["/?p=1"])
        everything = {"X-Purge-Method": "regex", **agent}
        site.purges("Proxy Cache Purge, Empty Cache", "PURGE", "/.*", everything, WORDPRESS)
        site.purges("Proxy Cache Purge, --wildcard", "PURGE", "/wp-content/themes/.*", everything,
                    ["/wp-content/themes/x/style.css"])
        # purge_tags: the tags of a post, batched with vertical bars.
        tags = {"X-Purge-Method": "tags", **agent}
        site.purges("Proxy Cache Purge, tags", "PURGE", "/",
                    {"X-Cache-Tags-Pattern": "p-1|archive|feed|blog|home|404", **tags},
                    ["/", "/hello/", "/feed/"])
        site.purges("Proxy Cache Purge, tags as words", "PURGE", "/",
                    {"X-Cache-Tags-Pattern": r"\bp-12\b", **tags}, ["/other/"])
        # W3 Total Cache: a request line, Host, User-Agent, Connection.
        w3 = {"User-Agent": "W3 Total Cache", "Connection": "close"}
        site.purges("W3 Total Cache, a post", "PURGE", "/other/", w3, ["/other/"])
        site.purges("W3 Total Cache, flush", "PURGE", "/.*", w3, WORDPRESS)


def drupal():
    with Trial("drupal") as trial:
        site = Site(trial, "plugins/drupal.yaml", "Cache-Tags", DRUPAL, " ")
        agent = {"User-Agent": "varnish_purger module for Drupal 8."}
        site.purges("Varnish Purger, a tag", "BAN", "/", {"cache-tags": "node:1", **agent},
                    ["/node/1"])
        site.purges("Varnish Bundled Purger, tags", "BAN", "/",
                    {"purge-cache-tags": "node:12|config:views.view.articles", **agent},
                    ["/node/12", "/articles"])
        # The zero-configuration purger connects to addresses: tags have the address as Host.
        zero = {"User-Agent": "GuzzleHttp/7", "Accept-Encoding": "gzip"}
        site.purges("zero configuration, tags", "BAN", "/tags",
                    {"Cache-Tags": "node:1 node_list:article", **zero}, ["/node/1", "/articles"],
                    host=f"127.0.0.1:{site.port}")
        site.purges("zero configuration, a URL", "PURGE", "/articles", zero, ["/articles"])
        site.purges("zero configuration, a wildcard", "BAN", "/node/*", zero,
                    ["/node/1", "/node/12"])
        site.purges("zero configuration, everything", "BAN", "/.*", zero, DRUPAL)
        http = {"User-Agent": "purge_purger_http module for Drupal 8."}
        site.purges("HTTP Bundled Purger, Cache-Tag", "PURGE", "/",
                    {"cache-tag": "node:1,node:12", **http}, ["/node/1", "/node/12"])
        site.purges("HTTP Purger, Surrogate-Key", "PURGE", "/", {"surrogate-key": "rendered", **http},
                    ["/node/1", "/node/12", "/articles"])
        site.purges("xkey", "PURGE", "/", {"xkey": "node:1"}, ["/node/1"])
        site.purges("xkey-purge", "PURGE", "/", {"xkey-purge": "node:1 node:12"},
                    ["/node/1", "/node/12"])
        # The tags of this site in the expression of Magento's PurgeCache.
        magento = "((^|,)node:1(,|$))|((^|,)node:12(,|$))"
        site.purges("Magento, tags", "PURGE", "/", {"X-Magento-Tags-Pattern": magento},
                    ["/node/1", "/node/12"])
        site.purges("Magento, flush", "PURGE", "/", {"X-Magento-Tags-Pattern": ".*"}, DRUPAL)
        site.purges("an expression that is no list of tags", "BAN", "/",
                    {"cache-tags": "node:[0-9]+", **agent}, [], status=400)


if __name__ == "__main__":
    wordpress()
    drupal()
