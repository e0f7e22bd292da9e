package admin

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// answerTime bounds a request's queries.
	answerTime = 15 * time.Second
	// maxForm and maxBody bound what a form and a request of the API may send.
	maxForm = 256 << 10
	maxBody = 1 << 20
	// formField and formHeader carry the token which proves that a request comes from one of our pages.
	formField  = "csrf"
	formHeader = "X-CSRF-Token"
)

// request is an admitted request.
type request struct {
	*http.Request
	caller
	// outbox is the one in the path; the first if there is none.
	outbox *shown
	// visit identifies the browser; empty for tokens.
	visit string
}

// operator reports whether changes may be made.
func (r *request) operator() bool { return r.Role >= Operator }

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if c.access.open() && !atHome(r) {
		http.Error(w, "This console has no credentials and answers only on its own machine, as localhost or 127.0.0.1.", http.StatusForbidden)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, c.prefix); ok && (rest == "" || rest[0] == '/') && c.prefix != "" {
		stripped, address := *r, *r.URL
		address.Path, address.RawPath = rest, strings.TrimPrefix(r.URL.RawPath, c.prefix)
		stripped.URL = &address
		r = &stripped
	}
	if r.URL.Path == "" {
		seeOther(w, c.prefix+"/")
		return
	}
	c.mux.ServeHTTP(w, r)
}

// seeOther redirects to one of our pages, after a form. The address must be ours: only localPath may take a part of
// it from a request.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// guarded admits a request and turns errors into answers.
func (c *Console) guarded(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !rt.api && fromElsewhere(r) {
			c.comeIn(w, r)
			return
		}
		req, err := c.admit(w, r, rt)
		if err == nil {
			ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.time, answerTime))
			defer cancel()
			req.Request = r.WithContext(ctx)
			err = rt.answer(c, w, req)
		}
		if err == nil {
			return
		}
		if rt.api {
			c.apiError(w, r, err)
			return
		}
		var why *failure
		if errors.As(err, &why) && why.status == http.StatusUnauthorized && r.Method == http.MethodGet && len(c.access.Credentials.users) > 0 {
			seeOther(w, c.prefix+"/login?next="+url.QueryEscape(r.URL.RequestURI()))
			return
		}
		c.pageError(w, req, err)
	}
}

// fromElsewhere reports whether the user followed a link from another site, such as a chat. The browser then
// withholds a strict cookie, so that it is unknown whether they have logged in.
func fromElsewhere(r *http.Request) bool {
	return r.Method == http.MethodGet && visitOf(r) == "" && r.Header.Get("Sec-Fetch-Site") == "cross-site"
}

// comeIn makes the browser ask again from one of our pages; then it sends its cookie.
func (c *Console) comeIn(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Refresh", "0;url="+c.prefix+localPath(r.URL.RequestURI()))
	_, _ = io.WriteString(w, "<!DOCTYPE html>\n<title>Outbox</title>\n") // the client may be gone
}

// admit checks the user of a request, their role, and that the request was their own wish.
func (c *Console) admit(w http.ResponseWriter, r *http.Request, rt route) (*request, error) {
	limit := int64(maxForm)
	if rt.api {
		limit = maxBody
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	req := &request{Request: r, outbox: c.outboxes[0]}
	is, known := c.identify(r)
	req.caller = is
	if !is.byToken {
		req.visit = c.visit(w, r)
	}
	if rt.role > Nobody && !known {
		return req, &failure{http.StatusUnauthorized, "You have to log in first."}
	}
	if name := r.PathValue("target"); name != "" {
		found, ok := c.byName[name]
		if !ok {
			return req, notFound("There is no outbox %q here.", name)
		}
		req.outbox = found
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !is.byToken {
		if err := c.checkOrigin(r, rt); err != nil {
			return req, err
		}
	}
	if req.Role < rt.role {
		return req, forbidden("This needs an operator; you are a " + req.Role.String() + ".")
	}
	return req, nil
}

// checkOrigin refuses a change that a page of another site could have made a browser ask for.
func (c *Console) checkOrigin(r *http.Request, rt route) error {
	if err := c.origins.Check(r); err != nil {
		return forbidden("The request comes from another site.")
	}
	token := r.Header.Get(formHeader)
	if !rt.api {
		if err := r.ParseForm(); err != nil {
			return badInput(err)
		}
		token = r.PostForm.Get(formField)
	}
	if !c.ownForm(r, token) {
		return forbidden("The form has no valid token: it is too old, or not ours. Go back, reload the page and try again.")
	}
	return nil
}
