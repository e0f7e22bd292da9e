package admin

import (
	"net/http"
	"time"

	"github.com/packfinderz/outbox/ops"
)

type route struct {
	// method and path are the mux's pattern.
	method, path string
	// role is the role it requires.
	role Role
	// api is set for the JSON API.
	api bool
	// time bounds the answer. Default answerTime.
	time   time.Duration
	answer answer
}

// answer writes the answer to a request, or returns why it cannot.
type answer func(*Console, http.ResponseWriter, *request) error

// routes returns all addresses except for static files.
func routes() []route {
	page := func(method, path string, role Role, answer answer) route {
		return route{method: method, path: path, role: role, answer: answer}
	}
	api := func(method, path string, role Role, answer answer) route {
		return route{method: method, path: "/api/v1" + path, role: role, api: true, answer: answer}
	}
	return []route{
		page("GET", "/{$}", Viewer, (*Console).home),
		page("GET", "/login", Nobody, (*Console).loginPage),
		page("POST", "/login", Nobody, (*Console).logIn),
		page("POST", "/logout", Viewer, (*Console).logOut),
		page("GET", "/t/{target}/{$}", Viewer, (*Console).overviewPage),
		page("GET", "/t/{target}/events", Viewer, (*Console).eventsPage),
		page("GET", "/t/{target}/events/{id}", Viewer, (*Console).eventPage),
		page("GET", "/t/{target}/dead", Viewer, (*Console).deadPage),
		page("GET", "/t/{target}/retry", Operator, (*Console).retryPreview),
		page("POST", "/t/{target}/retry", Operator, acts(ops.OperationRetry)),
		page("GET", "/t/{target}/replay", Viewer, (*Console).replayPage),
		page("POST", "/t/{target}/replay", Operator, acts(ops.OperationReplay)),
		page("POST", "/t/{target}/hold", Operator, acts(ops.OperationHold)),
		page("POST", "/t/{target}/release", Operator, acts(ops.OperationRelease)),
		page("POST", "/t/{target}/jobs/{job}/stop", Operator, (*Console).stopJob),
		page("GET", "/t/{target}/relays", Viewer, (*Console).relaysPage),
		page("GET", "/t/{target}/audit", Viewer, (*Console).auditPage),
		{method: "GET", path: "/t/{target}/doctor", role: Viewer, time: examineTime, answer: (*Console).doctorPage},
		page("GET", "/", Viewer, (*Console).noSuchPage),

		{method: "GET", path: "/api/openapi.json", role: Nobody, api: true, answer: (*Console).apiDescription},
		api("GET", "/session", Viewer, asJSON((*Console).apiSession)),
		api("GET", "/targets", Viewer, asJSON((*Console).apiTargets)),
		api("GET", "/targets/{target}/overview", Viewer, asJSON((*Console).apiOverview)),
		api("GET", "/targets/{target}/samples", Viewer, asJSON((*Console).apiSamples)),
		api("GET", "/targets/{target}/events", Viewer, asJSON((*Console).apiEvents)),
		api("GET", "/targets/{target}/events/{id}", Viewer, asJSON((*Console).apiEvent)),
		api("GET", "/targets/{target}/dead", Viewer, asJSON((*Console).apiDead)),
		api("GET", "/targets/{target}/audit", Viewer, asJSON((*Console).audit)),
		{method: "GET", path: "/api/v1/targets/{target}/doctor", role: Viewer, api: true, time: examineTime, answer: asJSON((*Console).examine)},
		api("POST", "/targets/{target}/retry", Operator, apiChanges(ops.OperationRetry)),
		api("POST", "/targets/{target}/replay", Operator, apiChanges(ops.OperationReplay)),
		api("POST", "/targets/{target}/hold", Operator, apiChanges(ops.OperationHold)),
		api("POST", "/targets/{target}/release", Operator, apiChanges(ops.OperationRelease)),
		api("GET", "/targets/{target}/jobs/{job}", Viewer, jobAnswer((*request).job)),
		api("DELETE", "/targets/{target}/jobs/{job}", Operator, jobAnswer((*request).stopJob)),
	}
}

func (c *Console) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.HandleFunc(rt.method+" "+rt.path, c.guarded(rt))
	}
	mux.HandleFunc("GET /api/", c.guarded(route{role: Viewer, api: true, answer: (*Console).noSuchAPI}))
	files := http.FileServerFS(assetFiles)
	mux.HandleFunc("GET /assets/", func(w http.ResponseWriter, r *http.Request) {
		// Their address contains the version.
		w.Header().Set("Cache-Control", "public, max-age=86400")
		files.ServeHTTP(w, r)
	})
	return mux
}
