// Package layoutfile reads and writes layouts as YAML or JSON. It is a separate module so that the library needs no
// YAML.
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

// maxSize is far above any real layout. It bounds what is read if the path is wrong.
const maxSize = 1 << 20

// Load reads a layout from a file, YAML or JSON, and validates it.
func Load(path string) (layouts.Layout, error) {
	file, err := os.Open(path)
	if err != nil {
		return layouts.Layout{}, fmt.Errorf("read layout: %w", err)
	}
	defer func() { _ = file.Close() }() // it is only read, so closing cannot lose anything
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

// Parse reads a layout from YAML or JSON and validates it. An unknown key is an error: otherwise a misspelt column
// would look like a column that the table lacks.
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

// Format writes a layout as YAML, with its fields in order. The result is a start for a layout of your own.
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

// plain removes JSON's quotes and braces; single columns stay on one line.
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
