"""Articles in Flask: pages with tags, and a purge by tag when an article is published.

    NUTHATCH_ADMIN=http://127.0.0.1:8081 flask --app flask_site run --port 9000
"""

import os

from flask import Flask, make_response, request

from purging import Purger

app = Flask(__name__)
purger = Purger(os.environ.get("NUTHATCH_ADMIN", "http://127.0.0.1:8081"),
                os.environ.get("NUTHATCH_PURGE_TOKEN"))
articles = {1: "First", 2: "Second"}


def cached(text, *tags):
    """A response for all clients: a day at the node, a minute in browsers."""
    response = make_response(text)
    response.headers["Cache-Control"] = "public, max-age=60, s-maxage=86400"
    response.headers["Surrogate-Key"] = " ".join(tags)
    return response


@app.get("/articles/")
def overview():
    return cached(", ".join(articles.values()), "articles", *(f"article-{key}" for key in articles))


@app.get("/articles/<int:key>")
def article(key):
    return cached(articles[key], f"article-{key}")


@app.post("/articles/<int:key>")
def publish(key):
    articles[key] = request.get_data(as_text=True)
    # After the change is visible to new requests: in a database, after the commit.
    purger.purge_tags(f"article-{key}", "articles")
    return "", 204
