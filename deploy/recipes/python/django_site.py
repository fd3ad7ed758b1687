"""Articles in Django, in one file: pages with tags, and a purge by tag after the commit.

    NUTHATCH_ADMIN=http://127.0.0.1:8081 python django_site.py runserver 127.0.0.1:9000
"""

import os
import sys

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY=os.environ.get("SECRET_KEY", "only here"),
    DEFAULT_AUTO_FIELD="django.db.models.AutoField", USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3",
                           "NAME": os.environ.get("DATABASE", "articles.sqlite3")}})
django.setup()

from django.core.management import execute_from_command_line  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from django.db.models.signals import post_delete, post_save  # noqa: E402
from django.dispatch import receiver  # noqa: E402
from django.http import HttpResponse  # noqa: E402
from django.shortcuts import get_object_or_404  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402

from purging import Purger  # noqa: E402

purger = Purger(os.environ.get("NUTHATCH_ADMIN", "http://127.0.0.1:8081"),
                os.environ.get("NUTHATCH_PURGE_TOKEN"))


class Article(models.Model):
    title = models.CharField(max_length=100)

    class Meta:
        app_label = "articles"


@receiver([post_save, post_delete], sender=Article)
def purge(instance, **_):
    # Not before the commit: a request in between would store the old state again.
    transaction.on_commit(lambda: purger.purge_tags(f"article-{instance.pk}", "articles"))


def cached(text, *tags):
    """A response for all clients: a day at the node, a minute in browsers."""
    return HttpResponse(text, headers={
        "Cache-Control": "public, max-age=60, s-maxage=86400", "Surrogate-Key": " ".join(tags)})


def overview(request):
    articles = Article.objects.order_by("pk")
    return cached(", ".join(article.title for article in articles), "articles",
                  *(f"article-{article.pk}" for article in articles))


@csrf_exempt
def article(request, pk):
    found = get_object_or_404(Article, pk=pk)
    if request.method == "POST":
        with transaction.atomic():
            found.title = request.body.decode()
            found.save()
        return HttpResponse(status=204)
    return cached(found.title, f"article-{pk}")


urlpatterns = [path("articles/", overview), path("articles/<int:pk>", article)]

if __name__ == "__main__":
    if "runserver" in sys.argv and Article._meta.db_table not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            editor.create_model(Article)
        Article.objects.bulk_create([Article(title="First"), Article(title="Second")])
    execute_from_command_line(sys.argv)
