package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/wire"
)

const (
	ownPrefix   = "outbox-"
	cePrefix    = "ce-"
	contentType = "Content-Type"
	userAgent   = "outbox-webhook"
)

// header returns the headers of a message's request. Fields of the event have names of ours; its own headers keep
// their names. A header that HTTP cannot carry, or that must not come from an event, is refused by name, not left
// out.
func (p *Publisher) header(message *outbox.Message, at time.Time) (http.Header, error) {
	header := make(http.Header, 16+len(message.Headers))
	header.Set("User-Agent", userAgent)
	if p.config.Authorization != "" {
		header.Set("Authorization", p.config.Authorization)
	}
	p.signer.sign(header, message.ID.String(), at, message.Payload)
	if !p.config.Format.CloudEvents {
		setField(header, ownPrefix+"topic", message.Topic)
		setField(header, ownPrefix+"key", message.Key)
	}
	mediaType := message.ContentType
	for _, a := range p.config.Format.Attributes(message, cePrefix) {
		if strings.EqualFold(a.Name, contentType) {
			if mediaType == "" {
				mediaType = a.Value
			}
			continue
		}
		name, isField := p.fieldName(a.Name)
		if problem := nameProblem(header, name, isField); problem != "" {
			return nil, outbox.Rejected(fmt.Errorf("the event's header %q %s", a.Name, problem))
		}
		if isField {
			setField(header, name, a.Value)
			continue
		}
		// Keep it as it is, because other standards define its content (traceparent, baggage).
		value := encode(a.Value, func(c byte) bool { return c >= 0x80 })
		if problem := valueProblem(value); problem != "" {
			return nil, outbox.Rejected(fmt.Errorf("the event's header %q %s", a.Name, problem))
		}
		header.Set(name, value)
	}
	if mediaType == "" && json.Valid(message.Payload) {
		// Tables of JSON have no content type, and most receivers parse a body only if they know its type.
		mediaType = "application/json"
	}
	if problem := valueProblem(mediaType); problem != "" {
		return nil, outbox.Rejected(fmt.Errorf("the event's content type %q %s", mediaType, problem))
	}
	if mediaType != "" {
		header.Set(contentType, mediaType)
	}
	return header, nil
}

// fieldName returns the header name of an attribute, and whether it is a field of the event rather than one of its
// own headers.
func (p *Publisher) fieldName(attribute string) (name string, isField bool) {
	if p.config.Format.CloudEvents {
		return attribute, len(attribute) >= len(cePrefix) && strings.EqualFold(attribute[:len(cePrefix)], cePrefix)
	}
	switch attribute {
	case wire.EventID, wire.EventType, wire.AggregateType, wire.AggregateID, wire.CreatedAt, wire.Namespace, wire.TenantID, wire.DedupeKey,
		wire.ContentType:
		return ownPrefix + strings.ReplaceAll(attribute, "_", "-"), true
	}
	return attribute, false
}

// setField writes a field as the HTTP binding of CloudEvents says: it percent-encodes everything but printable
// ASCII, and the space, quote and percent sign. It leaves out an empty field.
func setField(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, encode(value, func(c byte) bool { return c <= ' ' || c == '"' || c == '%' || c >= 0x7f }))
	}
}

// nameProblem says why an event cannot have a header of this name; empty if it can.
func nameProblem(header http.Header, name string, isField bool) string {
	switch {
	case !token.MatchString(name):
		return "has a name that HTTP cannot carry"
	case !isField && isReserved(name):
		return "has a name that is not an event's to set"
	case header.Values(name) != nil:
		return "is there twice: HTTP does not tell upper from lower case"
	}
	return ""
}

// isReserved reports whether a header steers the connection, carries credentials, says who
// sent the request, or is one of those that tell receivers what the event is.
func isReserved(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect", "http2-settings",
		"authorization", "cookie", "user-agent", "forwarded", "x-real-ip", "origin", "referer":
		return true
	}
	prefixes := []string{"webhook-", ownPrefix, "proxy-", "x-forwarded-", "sec-"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// token matches the header names that HTTP allows.
var token = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// valueProblem says why HTTP cannot carry a value unchanged; empty if it can.
func valueProblem(value string) string {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c >= 0x7f {
			return "has a character that HTTP cannot carry"
		}
	}
	if strings.Trim(value, " \t") != value {
		return "begins or ends with a space, which HTTP would drop"
	}
	return ""
}

func encode(value string, special func(byte) bool) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; special(c) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
