package admin

import (
	_ "embed" // for the description
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/packfinderz/outbox/ops"
)

//go:embed openapi.json
var description []byte

func (c *Console) apiDescription(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(description) // the client may be gone
	return nil
}

func (c *Console) noSuchAPI(http.ResponseWriter, *request) error {
	return notFound("There is no such address; /api/openapi.json lists them all.")
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(content, '\n')) // the client may be gone
	return nil
}

// asJSON writes the result of a function as JSON.
func asJSON[T any](find func(*Console, *request) (T, error)) answer {
	return func(c *Console, w http.ResponseWriter, r *request) error {
		found, err := find(c, r)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, found)
	}
}

func (c *Console) apiError(w http.ResponseWriter, r *http.Request, err error) {
	status, text := c.judge(r, err)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="outbox"`)
	}
	_ = writeJSON(w, status, map[string]string{"error": text}) // two strings can always be written
}

func (c *Console) apiSession(r *request) (map[string]string, error) {
	session := map[string]string{"name": r.Name, "role": r.Role.String()}
	if !r.byToken {
		session["csrfToken"] = c.formToken(r.visit)
	}
	return session, nil
}

func (c *Console) apiTargets(*request) (any, error) {
	type about struct {
		Target string `json:"target"`
		ops.Description
	}
	all := make([]about, len(c.outboxes))
	for i, t := range c.outboxes {
		all[i] = about{t.Name, t.about}
	}
	return map[string]any{"targets": all}, nil
}

func (c *Console) apiOverview(r *request) (*ops.Overview, error) {
	found, _, err := r.outbox.samples.watch(r.Context())
	return found, err
}

func (c *Console) apiSamples(r *request) (any, error) {
	_, samples, err := r.outbox.samples.watch(r.Context())
	return map[string]any{"samples": samples}, err
}

func (c *Console) apiEvents(r *request) (*ops.Listing, error) {
	filter, err := parseFilter(r.URL.Query())
	if err != nil {
		return nil, err
	}
	page, err := parsePage(r.URL.Query())
	if err != nil {
		return nil, err
	}
	return r.outbox.List(r.Context(), filter, page)
}

func (c *Console) apiEvent(r *request) (*ops.Details, error) {
	details, err := r.show()
	if err == nil && c.masked(r) {
		details.Payload, details.Headers = nil, nil
	}
	return details, err
}

func (c *Console) apiDead(r *request) (*ops.DeadGroups, error) {
	return r.outbox.DeadGroups(r.Context())
}

// apiChange is the body of a request that changes events.
type apiChange struct {
	ops.Filter
	// All confirms that the filter is empty on purpose.
	All bool `json:"all"`
	// DryRun counts the events and changes nothing.
	DryRun bool `json:"dryRun"`
	// Rate bounds a replay, in events per second.
	Rate int `json:"rate"`
}

func apiChanges(operation ops.Operation) answer {
	return func(c *Console, w http.ResponseWriter, r *request) error {
		var asked apiChange
		if err := readJSON(r, &asked); err != nil {
			return err
		}
		ch := change{operation: operation, filter: asked.Filter, all: asked.All, rate: asked.Rate}
		if asked.DryRun {
			result, err := c.preview(r, ch)
			if err != nil {
				return err
			}
			return writeJSON(w, http.StatusOK, result)
		}
		begun, err := c.begin(r, ch)
		if err != nil {
			return err
		}
		if state := begun.state(); state.failed != 0 {
			return writeJSON(w, state.failed, state)
		}
		return writeJob(w, begun)
	}
}

// writeJob writes the state of a change; 202 means "still running".
func writeJob(w http.ResponseWriter, of *job) error {
	state := of.state()
	status := http.StatusOK
	if state.Running {
		status = http.StatusAccepted
	}
	return writeJSON(w, status, state)
}

func jobAnswer(find func(*request) (*job, error)) answer {
	return func(_ *Console, w http.ResponseWriter, r *request) error {
		found, err := find(r)
		if err != nil {
			return err
		}
		return writeJob(w, found)
	}
}

// readJSON reads a request's body strictly: a misspelt filter would be an empty one.
func readJSON(r *request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &failure{http.StatusUnsupportedMediaType, "Send JSON, with Content-Type: application/json."}
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return badInput(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return badInput(errors.New("there is something after the JSON document"))
	}
	return nil
}
