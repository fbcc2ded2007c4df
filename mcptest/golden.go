package mcptest

import (
	"bytes"
	"encoding/json"
	"flag"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A surface is what a client sees of a server, by the names that requests use.
type surface struct {
	Tools     map[string]json.RawMessage `json:"tools"`
	Prompts   map[string]json.RawMessage `json:"prompts"`
	Resources map[string]json.RawMessage `json:"resources"`
	Templates map[string]json.RawMessage `json:"resourceTemplates"`
}

// Golden compares the tools, prompts, resources and resource templates that s shows with the file.
//
// A view shows what its principal may see, and its version has: make a golden file for each group
// of scopes with [Server.As], and one for each version that matters with [Server.Version].
//
// Golden writes the file if the test runs with -update. The flag belongs to the test package:
//
//	var _ = flag.Bool("update", false, "write golden files and transcripts")
func Golden(t testing.TB, s *Server, file string) {
	t.Helper()
	raw, err := jsonx.Marshal(s.surface())
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	now := append(indent(raw), '\n')
	if updating() {
		writeFile(t, file, now)
		return
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("mcptest: %v; %s", err, howToUpdate)
	}
	compare(t, file, string(golden), string(now))
}

// compare fails the test if the file and what came instead differ.
func compare(t testing.TB, file, want, got string) {
	t.Helper()
	assert.Equal(t, want, got, "mcptest: the server differs from %s; %s", file, howToUpdate)
}

func indent(raw []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return raw
	}
	return b.Bytes()
}

// writeFile writes a file and creates its folder, since a new package has no testdata.
func writeFile(t testing.TB, file string, data []byte) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
}

// updating reports whether the flag -update is set.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

// howToUpdate describes how to write files. This package has no flag, since it would clash with
// those of many test packages.
const howToUpdate = `-update writes it; the test package needs the flag: var _ = flag.Bool("update", false, "write golden files")`

// surface lists everything that the server offers.
func (s *Server) surface() *surface {
	s.t.Helper()
	c, all := s.Client(), &surface{}
	has := c.Capabilities()
	list := func(offered bool, into *map[string]json.RawMessage, method, member, name string) {
		s.t.Helper()
		*into = map[string]json.RawMessage{}
		if !offered {
			return
		}
		for _, raw := range collect(s.t, method, c.Items(s.t.Context(), method, member, nil)) {
			(*into)[jsonx.String(jsonx.Member(raw, name))] = raw
		}
	}
	list(has.Tools != nil, &all.Tools, protocol.MethodToolsList, "tools", "name")
	list(has.Prompts != nil, &all.Prompts, protocol.MethodPromptsList, "prompts", "name")
	list(has.Resources != nil, &all.Resources, protocol.MethodResourcesList, "resources", "uri")
	list(has.Resources != nil, &all.Templates, protocol.MethodResourcesTemplatesList, "resourceTemplates", "uriTemplate")
	return all
}

// collect ends the test if a list fails.
func collect[T any](t testing.TB, method string, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for v, err := range seq {
		if err != nil {
			t.Fatalf("mcptest: %s: %v", method, err)
		}
		all = append(all, v)
	}
	return all
}
