"""A person at the admin, over real HTTP: cookies, forms, CSRF tokens."""
import http.cookiejar
import re
import urllib.parse
import urllib.request


class Browser:
    """Knows as much of a browser as the admin needs."""

    def __init__(self, url):
        self.url = url
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(self, path):
        return self.open(urllib.request.Request(self.url + path))

    def post(self, path, fields, form=None):
        """Send a form, with the token of its page, which is at the same path unless said otherwise."""
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.get(form or path)).group(1)
        data = urllib.parse.urlencode({"csrfmiddlewaretoken": token, **fields}, doseq=True).encode()
        return self.open(urllib.request.Request(self.url + path, data, {"Referer": self.url + path}))

    def open(self, request):
        with self.opener.open(request, timeout=60) as answer:
            return answer.read().decode()

    def log_in(self, username, password):
        return self.post("/admin/login/?next=/admin/", {"username": username, "password": password})
