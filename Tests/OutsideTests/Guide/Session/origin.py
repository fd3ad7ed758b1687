"""A web server with an image at every path that ends like one, a sitemap, and pages.

It listens on 127.0.0.1 before the program returns, and serves in the background.
"""

import http.server
import os
import struct
import sys
import zlib


def chunk(name, content):
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
    + chunk(b"tEXt", b"Comment\0".ljust(997))
    + chunk(b"IDAT", zlib.compress(bytes(9) * 8))
    + chunk(b"IEND", b"")
)
SITEMAP = b"""<?xml version="1.0"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://127.0.0.1:9000/a.jpg</loc></url>
</urlset>
"""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.endswith((".jpg", ".png")):
            kind, body = "image/png", PNG
        elif path.endswith(".xml"):
            kind, body = "application/xml", SITEMAP
        else:
            kind, body = "text/html", b"<p>a page</p>\n"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{len(body)}"')
        self.send_header("Surrogate-Key", "product-17")
        if kind == "text/html":
            self.send_header("Cache-Control", "max-age=60")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
if os.fork() == 0:
    server.serve_forever()
