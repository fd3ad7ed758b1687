"""Purges a Nuthatch cluster from an application, using only the standard library.

    PURGER = Purger("http://127.0.0.1:8081", token=os.environ.get("NUTHATCH_PURGE_TOKEN"))
    PURGER.purge_tags("article-7", "articles")

The URL is a node's admin port; any node of a cluster serves. The token has the role `purge`, in the
file of --admin-token-file; without that file, a node on loopback needs none.
"""

import json
import urllib.request


class PurgeIncomplete(Exception):
    """Some members have not confirmed. They serve no purged response beyond the receipt's bound."""


class Purger:
    def __init__(self, url, token=None, timeout=5):
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout

    def purge_tags(self, *tags, soft=False):
        return self.purge([{"tag": tag} for tag in tags], soft)

    def purge_urls(self, *urls, soft=False):
        return self.purge([{"url": url} for url in urls], soft)

    def purge(self, targets, soft=False):
        """Returns the receipts, one for every 256 targets, when all members have confirmed."""
        receipts = []
        for start in range(0, len(targets), 256):
            body = {"mode": "soft" if soft else "hard", "targets": targets[start:start + 256],
                    "wait": "all", "timeout_ms": int(self.timeout * 1000)}
            request = urllib.request.Request(
                self.url + "/admin/v1/purges", json.dumps(body).encode(),
                {"Content-Type": "application/json"})
            if self.token:
                request.add_header("Authorization", "Bearer " + self.token)
            with urllib.request.urlopen(request, timeout=self.timeout + 5) as response:
                receipt = json.load(response)
            if not receipt["all_confirmed"]:
                raise PurgeIncomplete(receipt)
            receipts.append(receipt)
        return receipts
