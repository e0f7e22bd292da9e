package admin

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"

	"github.com/packfinderz/outbox/ops"
)

//go:embed templates
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// pages are the templates, each with its frame, and the version of the files they load.
type pages struct {
	byName  map[string]*template.Template
	version string
}

func parsePages() (*pages, error) {
	names, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("find the pages: %w", err)
	}
	p := &pages{byName: map[string]*template.Template{}}
	frame, err := template.New("frame.html").Funcs(words).ParseFS(templateFiles, "templates/frame.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("read the frame of the pages: %w", err)
	}
	for _, name := range names {
		page := name[len("templates/") : len(name)-len(".html")]
		if page == "frame" || page == "parts" {
			continue
		}
		with, err := frame.Clone()
		if err == nil {
			with, err = with.ParseFS(templateFiles, name)
		}
		if err != nil {
			return nil, fmt.Errorf("read the page %s: %w", page, err)
		}
		p.byName[page] = with
	}
	p.version, err = hashOf(assetFiles)
	return p, err
}

// hashOf returns a hash of some files, so that browsers notice when they change.
func hashOf(files fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		_, _ = sum.Write(content) // a hash takes everything
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the files of the pages: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// view is the data of every page.
type view struct {
	// Title and Page name the page, for people and in the navigation.
	Title, Page string
	// Prefix is the console's path, Base the outbox's.
	Prefix, Base string
	Targets      []link
	Target       string
	About        *ops.Description
	// Name and Role are those of the user; empty for nobody.
	Name, Role string
	// Operator is set for a user who may change events; LogOut for one who can log out.
	Operator, LogOut bool
	// Token goes into every form.
	Token string
	// Version is the version of the files.
	Version string
	// Jobs are the changes to report.
	Jobs []jobState
	// Content is the page's own.
	Content any
}

type link struct{ Name, URL string }

// Can reports whether the caller may do an operation, and the outbox supports it.
func (v *view) Can(operation ops.Operation) bool {
	_, cannot := v.About.Cannot[operation]
	return v.Operator && !cannot
}

func (c *Console) newView(r *request, page, title string, content any) *view {
	v := &view{
		Title: title, Page: page, Prefix: c.prefix, Base: c.base(r.outbox), Target: r.outbox.Name, About: &r.outbox.about,
		Operator: r.operator(), LogOut: r.bySession, Token: c.formToken(r.visit), Version: c.pages.version, Content: content,
	}
	if r.Role == Nobody {
		return v
	}
	v.Name, v.Role = r.Name, r.Role.String()
	for _, t := range c.outboxes {
		v.Targets = append(v.Targets, link{t.Name, c.base(t) + "/"})
	}
	tell := r.outbox.jobs.current()
	if asked := r.outbox.jobs.find(r.URL.Query().Get("job")); asked != nil && !slices.Contains(tell, asked) {
		tell = append(tell, asked)
	}
	for _, w := range tell {
		v.Jobs = append(v.Jobs, w.state())
	}
	return v
}

// render writes a page. It builds the whole page before it sends the first byte, so that an error never leaves half
// a page.
func (c *Console) render(w http.ResponseWriter, r *request, status int, page, title string, content any) error {
	return c.renderPart(w, c.newView(r, page, title, content), status, "frame.html")
}

func (c *Console) renderPart(w http.ResponseWriter, v *view, status int, part string) error {
	var out bytes.Buffer
	if err := c.pages.byName[v.Page].ExecuteTemplate(&out, part, v); err != nil {
		return fmt.Errorf("make the page %s: %w", v.Page, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the client may be gone
	return nil
}

func (c *Console) pageError(w http.ResponseWriter, r *request, err error) {
	status, text := c.judge(r.Request, err)
	if err := c.render(w, r, status, "error", http.StatusText(status), text); err != nil {
		c.log.Error("the console could not show an error", "error", err)
		http.Error(w, text, status)
	}
}

func (c *Console) noSuchPage(http.ResponseWriter, *request) error {
	return notFound("There is no such page.")
}

// home redirects to the first outbox's overview.
func (c *Console) home(w http.ResponseWriter, r *request) error {
	seeOther(w, c.base(r.outbox)+"/")
	return nil
}
