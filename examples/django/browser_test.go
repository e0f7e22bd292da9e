package main

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// browser is a person at a site: it keeps cookies, and fails the test where the site does.
type browser struct {
	*testing.T
	site   string
	client http.Client
}

func newBrowser(t *testing.T, site string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, site, http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (b *browser) get(path string) string {
	b.Helper()
	return b.do(http.MethodGet, path, "", nil)
}

func (b *browser) do(method, path, mediaType string, body io.Reader) string {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), method, b.site+path, body)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	response, err := b.client.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 400 {
		b.Fatalf("%s %s: %s (%v)\n%s", method, path, response.Status, err, page)
	}
	return string(page)
}

// upload is curl -F file=@name.
func (b *browser) upload(path, name string) {
	b.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("file", name)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := file.Write(content); err != nil {
		b.Fatal(err)
	}
	if err := form.Close(); err != nil {
		b.Fatal(err)
	}
	b.do(http.MethodPost, path, form.FormDataContentType(), &body)
}

var csrfToken = regexp.MustCompile(`name="csrfmiddlewaretoken" value="([^"]+)"`)

// logIn fills in the form of the admin.
func (b *browser) logIn(path, user, password string) {
	b.Helper()
	token := csrfToken.FindStringSubmatch(b.get(path))
	if token == nil {
		b.Fatalf("%s has no form", path)
	}
	form := url.Values{"csrfmiddlewaretoken": {token[1]}, "username": {user}, "password": {password}, "next": {"/admin/"}}
	page := b.do(http.MethodPost, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if csrfToken.MatchString(page) && strings.Contains(page, `name="password"`) {
		b.Fatalf("the login failed:\n%s", page)
	}
}
