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

// apiDescription is the API in OpenAPI's words.
func (c *Console) apiDescription(w http.ResponseWriter, _ *request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(description) // the client may be gone
	return nil
}

// noSuchAPI answers programs in their language.
func (c *Console) noSuchAPI(http.ResponseWriter, *request) error {
	return notFound("There is no such address; /api/openapi.json lists them all.")
}

// writeJSON answers a program.
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

// apiError tells a program what went wrong.
func (c *Console) apiError(w http.ResponseWriter, r *http.Request, err error) {
	status, text := c.judge(r, err)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="outbox"`)
	}
	_ = writeJSON(w, status, map[string]string{"error": text}) // two strings can always be written
}

func (c *Console) apiSession(w http.ResponseWriter, r *request) error {
	answer := map[string]string{"name": r.Name, "role": r.Role.String()}
	if !r.byToken {
		answer["csrfToken"] = c.formToken(r.visit)
	}
	return writeJSON(w, http.StatusOK, answer)
}

func (c *Console) apiTargets(w http.ResponseWriter, _ *request) error {
	type about struct {
		Target string `json:"target"`
		ops.Description
	}
	all := make([]about, len(c.outboxes))
	for i, t := range c.outboxes {
		all[i] = about{t.Name, t.about}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"targets": all})
}

func (c *Console) apiOverview(w http.ResponseWriter, r *request) error {
	found, _, err := r.outbox.samples.watch(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, found)
}

func (c *Console) apiSamples(w http.ResponseWriter, r *request) error {
	_, samples, err := r.outbox.samples.watch(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"samples": samples})
}

func (c *Console) apiEvents(w http.ResponseWriter, r *request) error {
	filter, err := parseFilter(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := parsePage(r.URL.Query())
	if err != nil {
		return err
	}
	list, err := r.outbox.List(r.Context(), filter, page)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, list)
}

func (c *Console) apiEvent(w http.ResponseWriter, r *request) error {
	details, err := r.show()
	if err != nil {
		return err
	}
	if c.masked(r) {
		details.Payload, details.Headers = nil, nil
	}
	return writeJSON(w, http.StatusOK, details)
}

func (c *Console) apiDead(w http.ResponseWriter, r *request) error {
	groups, err := r.outbox.DeadGroups(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, groups)
}

func (c *Console) apiAudit(w http.ResponseWriter, r *request) error {
	log, err := r.audit()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, log)
}

func (c *Console) apiDoctor(w http.ResponseWriter, r *request) error {
	report, err := c.examine(r)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, report)
}

// apiChange is what a program sends to change events.
type apiChange struct {
	ops.Filter
	// All is said where the filter is empty on purpose.
	All bool `json:"all"`
	// DryRun counts only.
	DryRun bool `json:"dryRun"`
	// Rate bounds a replay, in events per second.
	Rate int `json:"rate"`
}

// apiChanges answers requests for one kind of change.
func apiChanges(operation ops.Operation) func(*Console, http.ResponseWriter, *request) error {
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
		return writeJob(w, begun)
	}
}

// writeJob tells how far a change is; 202 is "still running".
func writeJob(w http.ResponseWriter, of *job) error {
	state := of.state()
	status := http.StatusOK
	if state.Running {
		status = http.StatusAccepted
	}
	return writeJSON(w, status, state)
}

func (c *Console) apiJob(w http.ResponseWriter, r *request) error {
	found, err := r.job()
	if err != nil {
		return err
	}
	return writeJob(w, found)
}

func (c *Console) apiStopJob(w http.ResponseWriter, r *request) error {
	found, err := r.job()
	if err != nil {
		return err
	}
	found.stop()
	found.await(r.Context())
	return writeJob(w, found)
}

// readJSON reads what a program sent, strictly: a misspelt filter would be an empty one.
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
