package main

import (
	"strings"
	"testing"
)

// said is a run of two packages: one test passes, one is skipped, one fails.
const said = `{"Action":"start","Package":"x/one"}
{"Action":"run","Package":"x/one","Test":"TestGood"}
{"Action":"output","Package":"x/one","Test":"TestGood","Output":"good news\n"}
{"Action":"pass","Package":"x/one","Test":"TestGood","Elapsed":0.1}
{"Action":"output","Package":"x/one","Test":"TestDump","Output":"=== RUN   TestDump\n"}
{"Action":"output","Package":"x/one","Test":"TestDump","Output":"    run.go:11: seed 1\n"}
{"Action":"output","Package":"x/one","Test":"TestDump","Output":"    restore.go:30: left out: no pg_dump\n"}
{"Action":"skip","Package":"x/one","Test":"TestDump","Elapsed":0}
{"Action":"pass","Package":"x/one","Elapsed":1}
`

func TestReadResult(t *testing.T) {
	t.Parallel()
	r, err := readResult(strings.NewReader(said))
	if err != nil || !r.ok() || r.passed != 1 {
		t.Errorf("got %+v, %v, want one passed test", r, err)
	}
	if len(r.leftOut) != 1 || r.leftOut[0] != "one.TestDump: left out: no pg_dump" {
		t.Errorf("left out: %q", r.leftOut)
	}
	r, err = readResult(strings.NewReader(said + `{"Action":"output","Package":"x/two","Test":"TestBad","Output":"bad news\n"}
{"Action":"fail","Package":"x/two","Test":"TestBad"}
{"Action":"fail","Package":"x/two"}
`))
	if err != nil || r.ok() || !strings.Contains(r.output, "bad news") || strings.Contains(r.output, "good news") {
		t.Errorf("got %+v, %v, want a failure with its output alone", r, err)
	}
	for _, nothing := range []string{"", `{"Action":"skip","Package":"x/three"}`, said + "garbage"} {
		if r, err := readResult(strings.NewReader(nothing)); err == nil && r.ok() {
			t.Errorf("%q counts as tested", nothing)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	if all, err := choose(" "); err != nil || len(all) != len(areas()) {
		t.Errorf("got %v, %v, want all", all, err)
	}
	if some, err := choose("stream chaos"); err != nil || len(some) != 2 || some[1].name != "chaos" {
		t.Errorf("got %v, %v", some, err)
	}
	if _, err := choose("streams"); err == nil {
		t.Error("an area that there is not was taken")
	}
}

func TestFormatTable(t *testing.T) {
	t.Parallel()
	chosen, err := choose("emit stream")
	if err != nil {
		t.Fatal(err)
	}
	got, err := formatTable(chosen, []row{
		{release: "14.23", results: []result{{passed: 3}, {passed: 4, leftOut: []string{"one.TestDump: no pg_dump"}}}},
		{release: "18.4", results: []result{{failed: true}, {}}},
	})
	const want = `PostgreSQL   emit         stream         tests   left out
14.23        ok 0 s       ok 0 s         7       1
18.4         FAILED 0 s   NO TESTS 0 s   0       0
left out on 14.23: one.TestDump: no pg_dump
`
	if err != nil || got != want {
		t.Errorf("got\n%s\n%v, want\n%s", got, err, want)
	}
}
