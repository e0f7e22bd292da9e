// Package layoutfile reads and writes pgstore layouts as YAML or JSON. It is a
// module of its own so that the library itself needs no YAML.
package layoutfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/packfinderz/outbox/layouts"
)

// maxSize is far above any real layout; it keeps a wrong path from being read whole.
const maxSize = 1 << 20

// Load reads a layout from a file, YAML or JSON, and validates it.
func Load(path string) (layouts.Layout, error) {
	file, err := os.Open(path)
	if err != nil {
		return layouts.Layout{}, fmt.Errorf("read layout: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading: closing cannot lose anything
	doc, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return layouts.Layout{}, fmt.Errorf("read layout %s: %w", path, err)
	}
	if len(doc) > maxSize {
		return layouts.Layout{}, fmt.Errorf("read layout %s: larger than %d bytes, this is no layout", path, maxSize)
	}
	layout, err := Parse(doc)
	if err != nil {
		return layouts.Layout{}, fmt.Errorf("layout file %s: %w", path, err)
	}
	return layout, nil
}

// Parse reads a layout from YAML or JSON and validates it. A key it does not know is
// an error: a misspelt column would otherwise be a column the table seems to lack.
func Parse(doc []byte) (layouts.Layout, error) {
	var tree any
	if err := yaml.Unmarshal(doc, &tree); err != nil {
		return layouts.Layout{}, fmt.Errorf("not YAML or JSON: %w", err)
	}
	if _, ok := tree.(map[string]any); !ok {
		return layouts.Layout{}, errors.New("not a layout: expected a mapping with name, table, columns and so on")
	}
	// The layout's own JSON form is the one definition of its keys.
	asJSON, err := json.Marshal(tree)
	if err != nil {
		return layouts.Layout{}, fmt.Errorf("not a layout: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.DisallowUnknownFields()
	var layout layouts.Layout
	if err := decoder.Decode(&layout); err != nil {
		return layouts.Layout{}, fmt.Errorf("not a layout: %w", err)
	}
	if err := layout.Validate(); err != nil {
		return layouts.Layout{}, err
	}
	return layout, nil
}

// Format writes a layout as YAML, its fields in their order: the start of a custom one.
func Format(layout layouts.Layout) ([]byte, error) {
	asJSON, err := json.Marshal(layout)
	if err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	// JSON is YAML; reading it as a tree of nodes keeps the order of the fields.
	var tree yaml.Node
	if err := yaml.Unmarshal(asJSON, &tree); err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	plain(&tree)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&tree); err != nil {
		return nil, fmt.Errorf("write layout: %w", err)
	}
	return out.Bytes(), nil
}

// plain takes JSON's quotes and braces away; single columns stay on one line.
func plain(node *yaml.Node) {
	node.Style = 0
	if node.Kind == yaml.MappingNode && len(node.Content) > 0 && node.Content[0].Value == "name" &&
		!hasChild(node, "table") {
		node.Style = yaml.FlowStyle
	}
	for _, child := range node.Content {
		plain(child)
	}
}

func hasChild(node *yaml.Node, key string) bool {
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return true
		}
	}
	return false
}
