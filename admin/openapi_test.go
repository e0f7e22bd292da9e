package admin

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDescription: the description has every address of the API, and no other; what it refers to
// is there, and parameters of paths are described.
func TestDescription(t *testing.T) {
	t.Parallel()
	var doc struct {
		OpenAPI    string `json:"openapi"`
		Paths      map[string]map[string]json.RawMessage
		Components map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(description, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("it is OpenAPI %q", doc.OpenAPI)
	}
	described := map[string]bool{}
	for path, methods := range doc.Paths {
		for method, operation := range methods {
			described[strings.ToUpper(method)+" "+path] = true
			for _, parameter := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
				if !strings.Contains(string(operation), "/parameters/"+parameter[1]+`"`) && !strings.Contains(string(operation), `"name": "`+parameter[1]+`"`) {
					t.Errorf("%s %s does not describe %s", method, path, parameter[1])
				}
			}
		}
	}
	served := map[string]bool{}
	for _, rt := range routes() {
		if rt.api {
			served[rt.method+" "+rt.path] = true
		}
	}
	if !maps.Equal(described, served) {
		t.Errorf("described: %q\nserved: %q", slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(served)))
	}
	for _, reference := range regexp.MustCompile(`"#/components/(\w+)/(\w+)"`).FindAllStringSubmatch(string(description), -1) {
		if doc.Components[reference[1]][reference[2]] == nil {
			t.Errorf("%s is referred to and is not there", reference[0])
		}
	}
}
