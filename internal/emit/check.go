package emit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/internal/jsoncheck"
)

// refusal is a field the target does not take; the caller adds which event it was.
type refusal struct{ field, problem string }

func refuse(field, format string, args ...any) *refusal {
	return &refusal{field: field, problem: fmt.Sprintf(format, args...)}
}

// check decides whether the target takes the event. Everything the server would
// refuse is refused here, while the caller's transaction is still untouched.
func (p *Plan) check(ev *outbox.Event, maxPayload int) *refusal {
	f := &p.Fields
	texts := [...]struct {
		field, value string
		rule         *Rule
		limit        int
	}{
		{"namespace", ev.Namespace, &f.Namespace, outbox.MaxName},
		{"topic", ev.Topic, &f.Topic, outbox.MaxName},
		{"type", ev.Type, &f.Type, outbox.MaxName},
		{"aggregate type", ev.AggregateType, &f.AggregateType, outbox.MaxName},
		{"aggregate id", ev.AggregateID, &f.AggregateID, outbox.MaxName},
		{"dedupe key", ev.DedupeKey, &f.DedupeKey, outbox.MaxKey},
		{"key", ev.Key, &f.Key, outbox.MaxKey},
		{"content type", ev.ContentType, &f.ContentType, outbox.MaxName},
	}
	for i := range texts {
		t := &texts[i]
		if problem := p.checkText(t.value, t.rule, t.limit); problem != "" {
			return &refusal{t.field, problem}
		}
	}
	if refused := p.checkTenant(ev); refused != nil {
		return refused
	}
	if refused := p.checkSchedule(ev); refused != nil {
		return refused
	}
	if refused := p.checkHeaders(ev); refused != nil {
		return refused
	}
	return p.checkPayload(ev, maxPayload)
}

func (p *Plan) noColumn() string {
	return fmt.Sprintf("is set, but %s has no column for it", p.Target)
}

func (p *Plan) checkText(value string, rule *Rule, limit int) string {
	switch {
	case value == "" && rule.Required:
		return fmt.Sprintf("is empty; %s needs one", p.Target)
	case value == "":
		return ""
	case !rule.Stored:
		return p.noColumn()
	case !utf8.ValidString(value):
		return "is not valid UTF-8"
	case strings.IndexByte(value, 0) >= 0:
		return "contains a NUL byte, which PostgreSQL cannot store"
	case len(value) > limit:
		return fmt.Sprintf("has %d bytes; the limit is %d", len(value), limit)
	case rule.MaxLength > 0 && utf8.RuneCountInString(value) > rule.MaxLength:
		return fmt.Sprintf("has %d characters; the column of %s holds %d",
			utf8.RuneCountInString(value), p.Target, rule.MaxLength)
	case len(rule.Values) > 0 && !slices.Contains(rule.Values, value):
		return fmt.Sprintf("is %q; %s knows only %s", value, p.Target, strings.Join(rule.Values, ", "))
	case rule.UUID && !isUUID(value):
		return fmt.Sprintf("is %q; the column of %s holds a UUID", value, p.Target)
	}
	return ""
}

// isUUID takes the two spellings that PostgreSQL and uuid.Parse agree on.
func isUUID(s string) bool {
	if len(s) != 36 && len(s) != 32 {
		return false
	}
	return uuid.Validate(s) == nil
}

// checkTenant holds a dedupe key to its tenant, so that one tenant's key can never
// swallow another's event.
func (p *Plan) checkTenant(ev *outbox.Event) *refusal {
	if ev.TenantID == uuid.Nil {
		return nil
	}
	if !p.Fields.TenantID.Stored {
		return &refusal{"tenant id", p.noColumn()}
	}
	if ev.DedupeKey == "" {
		return nil
	}
	tenant, _, found := strings.Cut(ev.DedupeKey, "/")
	if !found || !isUUID(tenant) || uuid.MustParse(tenant) != ev.TenantID {
		return refuse("dedupe key", "does not begin with the event's tenant id and a slash (%s/…)", ev.TenantID)
	}
	return nil
}

func (p *Plan) checkSchedule(ev *outbox.Event) *refusal {
	if !ev.NotBefore.IsZero() {
		if !p.Fields.NotBefore.Stored {
			return &refusal{"not before", p.noColumn()}
		}
		if year := ev.NotBefore.UTC().Year(); year < 1 || year > 9999 {
			return refuse("not before", "is %s; the year must be between 1 and 9999", ev.NotBefore.Format(time.RFC3339))
		}
	}
	switch {
	case ev.MaxAttempts == 0:
	case !p.Fields.MaxAttempts.Stored:
		return &refusal{"max attempts", p.noColumn()}
	case ev.MaxAttempts < 0 || ev.MaxAttempts > math.MaxInt32:
		return refuse("max attempts", "is %d; it must be between 1 and %d", ev.MaxAttempts, math.MaxInt32)
	}
	return nil
}

func (p *Plan) checkHeaders(ev *outbox.Event) *refusal {
	if len(ev.Headers) == 0 {
		return nil
	}
	if !p.Fields.Headers.Stored {
		return &refusal{"headers", p.noColumn()}
	}
	size := 0
	for name, value := range ev.Headers {
		size += len(name) + len(value)
		switch {
		case name == "":
			return &refusal{"headers", "have one with an empty name"}
		case !utf8.ValidString(name) || !utf8.ValidString(value):
			return refuse("headers", "have one that is not valid UTF-8: %q", name)
		case strings.IndexByte(name, 0) >= 0 || strings.IndexByte(value, 0) >= 0:
			return refuse("headers", "have one with a NUL byte, which PostgreSQL cannot store: %q", name)
		}
	}
	if size > outbox.MaxHeaders {
		return refuse("headers", "have %d bytes together; the limit is %d", size, outbox.MaxHeaders)
	}
	return nil
}

func (p *Plan) checkPayload(ev *outbox.Event, limit int) *refusal {
	if ev.Payload == nil {
		return &refusal{"payload", "is nil; use an empty JSON object, {}, for an event without data"}
	}
	if len(ev.Payload) > limit {
		return refuse("payload", "has %d bytes; the limit is %d", len(ev.Payload), limit)
	}
	switch p.Fields.Payload {
	case PayloadBytes:
	case PayloadText:
		switch {
		case !utf8.Valid(ev.Payload):
			return &refusal{"payload", "is not valid UTF-8, and the column holds text"}
		case slices.Contains(ev.Payload, 0):
			return &refusal{"payload", "contains a NUL byte, which PostgreSQL cannot store as text"}
		}
	case PayloadJSON, PayloadJSONB:
		expanded, err := jsoncheck.Check(ev.Payload)
		if err != nil {
			return refuse("payload", "%s", err)
		}
		if p.Fields.Payload == PayloadJSONB && expanded > limit {
			return refuse("payload", "is over the limit of %d bytes once jsonb writes its numbers out", limit)
		}
	}
	return nil
}
