package doorito_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"github.com/packfinderz/outbox/layouts/doorito"
)

// decimal is like the types of decimal libraries: it marshals itself as text, and as JSON without quotes.
type decimal string

func (d decimal) MarshalText() ([]byte, error) { return []byte(d), nil }
func (d decimal) MarshalJSON() ([]byte, error) { return []byte(d), nil }

// maybe is like a nullable decimal: its text is empty, its JSON null.
type maybe struct{}

func (maybe) MarshalText() ([]byte, error) { return nil, nil }
func (maybe) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// TestEncode compares values with the output of Django's own encoder.
func TestEncode(t *testing.T) {
	t.Parallel()
	at := func(nanoseconds int, zone *time.Location) time.Time {
		return time.Date(2026, 2, 26, 9, 30, 0, nanoseconds, zone)
	}
	east, west := time.FixedZone("", 2*60*60), time.FixedZone("", -(5*60+30)*60)
	id := uuid.MustParse("01954321-0000-7000-8000-00000000000a")
	quarter, ok := new(big.Float).SetString("0.25")
	if !ok {
		t.Fatal("0.25 is no number")
	}
	noTime := (*time.Time)(nil)
	for _, c := range []struct {
		value any
		want  string
	}{
		{at(0, time.UTC), `"2026-02-26T09:30:00Z"`},
		{at(123_456_789, time.UTC), `"2026-02-26T09:30:00.123Z"`},
		{at(100_000_000, time.UTC), `"2026-02-26T09:30:00.100Z"`},
		{at(999_000, time.UTC), `"2026-02-26T09:30:00.000Z"`},
		{at(999, time.UTC), `"2026-02-26T09:30:00Z"`}, // below the resolution of Python's times
		{at(999_999_000, east), `"2026-02-26T09:30:00.999+02:00"`},
		{at(0, west), `"2026-02-26T09:30:00-05:30"`},
		{time.Date(33, 2, 26, 9, 30, 0, 0, time.FixedZone("LMT", 3208)), `"0033-02-26T09:30:00+00:53:28"`},
		{&noTime, `null`},

		{time.Duration(0), `"P0DT00H00M00S"`},
		{26*time.Hour + 3*time.Second, `"P1DT02H00M03S"`},
		{90*time.Minute + 1500*time.Millisecond + 999, `"P0DT01H30M01.500000S"`},
		{-1500 * time.Millisecond, `"-P0DT00H00M01.500000S"`},
		{time.Duration(-999), `"P0DT00H00M00S"`}, // below the resolution of Python's durations
		{time.Duration(math.MinInt64), `"-P106751DT23H47M16.854775S"`},
		{time.Duration(math.MaxInt64), `"P106751DT23H47M16.854775S"`},

		{id, `"01954321-0000-7000-8000-00000000000a"`},
		{uuid.NullUUID{}, `null`},
		{uuid.NullUUID{UUID: id, Valid: true}, `"01954321-0000-7000-8000-00000000000a"`},
		{pgtype.UUID{Bytes: id, Valid: true}, `"01954321-0000-7000-8000-00000000000a"`},

		{decimal("19.90"), `"19.90"`},
		{decimal("-1E+3"), `"-1E+3"`},
		{maybe{}, `null`},
		{pgtype.Numeric{Int: big.NewInt(1990), Exp: -2, Valid: true}, `"19.90"`},
		{pgtype.Numeric{NaN: true, Valid: true}, `"NaN"`},
		{pgtype.Numeric{}, `null`},
		{*quarter, `"0.25"`},
		{big.NewRat(1, 4), `"1/4"`},
		{new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil), `1000000000000000000000000000000`},
		{pgtype.Int8{Int64: 7, Valid: true}, `7`},
		{json.Number("19.90"), `19.90`},
		{json.RawMessage(`19.90`), `19.90`},
		{netip.MustParseAddr("::1"), `"::1"`},
	} {
		// Inside something: a payload that is null itself is refused.
		want := `{"list":[` + c.want + `],"member":` + c.want + `}`
		got, err := doorito.Encode(map[string]any{"member": c.value, "list": []any{c.value}})
		if err != nil || string(got) != want {
			t.Errorf("%#v is %s (%v), want %s", c.value, got, err, want)
		}
	}
}

// TestEncodeStruct encodes special values behind tags, pointers and embedding.
func TestEncodeStruct(t *testing.T) {
	t.Parallel()
	type stamps struct {
		StoredAt time.Time  `json:"stored_at"`
		SeenAt   *time.Time `json:"seen_at,omitempty"`
		Name     string     `json:"name"`
	}
	moment, price := time.Date(2026, 2, 26, 9, 30, 0, 100_000_000, time.UTC), decimal("19.90")
	payload := struct {
		stamps
		ID     uuid.UUID              `json:"id"`
		Name   string                 `json:"name"`
		Prices map[uuid.UUID]*decimal `json:"prices"`
		Times  []time.Time            `json:"times"`
		Never  time.Time              `json:"never,omitzero"`
		Took   time.Duration          `json:"took,string"` // is a string already
		hidden time.Time
	}{
		stamps: stamps{StoredAt: moment, Name: "inner"}, ID: uuid.Max, Name: "outer",
		Prices: map[uuid.UUID]*decimal{uuid.Max: &price}, Times: []time.Time{moment}, Took: time.Second, hidden: moment,
	}
	const want = `{"id":"ffffffff-ffff-ffff-ffff-ffffffffffff","name":"outer",` +
		`"prices":{"ffffffff-ffff-ffff-ffff-ffffffffffff":"19.90"},` +
		`"stored_at":"2026-02-26T09:30:00.100Z","times":["2026-02-26T09:30:00.100Z"],"took":"P0DT00H00M01S"}`
	if got, err := doorito.Encode(&payload); err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

type embedded struct {
	Inner  int
	Shadow string
}

// Exported is embedded by its pointer.
type Exported struct{ Deep map[string][]byte }

// anything is a struct with every feature of tags and types.
type anything struct {
	embedded
	*Exported
	Shadow  bool
	Tagged  []int8             `json:"tagged"`
	Empty   []string           `json:"empty,omitempty"`
	Zero    [2]uint16          `json:",omitzero"`
	Text    int                `json:",string"`
	Flag    *bool              `json:"flag,string,omitempty"`
	Skipped string             `json:"-"`
	Numbers map[int]float64    `json:"numbers"`
	Structs []embedded         `json:"structs"`
	Any     map[string]*string `json:"any"`
	private string
}

// TestEncodeIsJSON compares everything that is not special with encoding/json.
func TestEncodeIsJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Make[anything]().Draw(t, "value")
		value.private = "never"
		want, err := json.Marshal(value)
		if err != nil { // a number that JSON does not have
			if got, err := doorito.Encode(value); err == nil {
				t.Fatalf("got %s, and encoding/json refuses it", got)
			}
			return
		}
		got, err := doorito.Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(parsed(t, got), parsed(t, want)) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func parsed(t *rapid.T, document []byte) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// Link can hold itself.
type Link struct{ *Link }

// failing cannot be written.
type failing struct{ error }

func (f failing) MarshalText() ([]byte, error) { return nil, f.error }

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	itself := map[string]any{}
	itself["itself"] = itself
	link := &Link{}
	link.Link = link
	for words, payload := range map[string]any{
		"a json.RawMessage":                  []byte(`{}`),
		`not valid UTF-8: "\xff"`:            map[string]any{"name": "\xff"},
		`a key that is not valid UTF-8`:      map[string]int{"\xff": 1},
		"keys of type bool":                  map[bool]int{true: 1},
		"field Stored: has a time in the ye": struct{ Stored time.Time }{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"unsupported value: NaN":             []float64{math.NaN()},
		"unsupported type: chan int":         []any{make(chan int)},
		"deeper than 1000 levels":            itself,
		"cannot be encoded: no text":         []any{failing{errors.New("no text")}},
		"cannot be encoded: json: error":     []any{json.RawMessage(`{`)},
	} {
		if got, err := doorito.Encode(payload); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%T is %s (%v), want %s", payload, got, err, words)
		}
	}
	if got, err := doorito.Encode(link); err == nil || !strings.Contains(err.Error(), "or holds itself") {
		t.Errorf("a struct that embeds itself is %s (%v)", got, err)
	}
	for _, nothing := range []any{nil, (*anything)(nil), map[string]any(nil)} {
		if got, err := doorito.Encode(nothing); got != nil || err != nil {
			t.Errorf("%#v is %s (%v), want nothing, which emit refuses", nothing, got, err)
		}
	}
}
