package mcpkit_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"math/big"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

var updateSurface = flag.Bool("update-surface", false, "write testdata/surface.json anew")

// surface is a service with everything that arguments and results can be made of.
type surface struct {
	_ struct {
		Everything mcpkit.Tool `hints:"readonly,idempotent,closed-world" title:"All types" meta:"example.com/team=types"`
		Sum        mcpkit.Tool `params:"a,b?"`
		Whole      mcpkit.Tool `desc:"Returns a result as it is."`
	}
}

// A Priority orders work.
type Priority string

const (
	// Low can wait.
	Low Priority = "low"
	// High cannot.
	High Priority = "high"
)

// A Weekday is a day, counted from Monday.
type Weekday int

const (
	Monday  Weekday = iota + 1 // hard
	Tuesday                    // better
)

// A Tree contains itself.
type Tree struct {
	// What the branch says.
	Label string  `json:"label" validate:"required"`
	Kids  []*Tree `json:"kids,omitempty"`
}

// Listed is one page of things.
type Listed[T any] struct {
	// The things of this page.
	Items []T `json:"items" validate:"omitempty,max=3"`
	// Where the next page begins.
	Next *string `json:"next"`
}

// Audit is embedded in others.
type Audit struct {
	// Who it was.
	By string `json:"by" validate:"omitempty" example:"ann"`
}

// Place is where something is.
type Place struct {
	Lat float64 `json:"lat" validate:"min=-90,max=90"`
	Lon float64 `json:"lon" validate:"min=-180,max=180"`
}

// Everything is one of each.
type Everything struct {
	Audit
	// Whether it counts.
	Flag bool `json:"flag" validate:"required"`
	// A small number.
	Small int8    `json:"small" validate:"omitempty"`
	Large int64   `json:"large" validate:"omitempty" example:"9007199254740993"`
	Count uint64  `json:"count" validate:"omitempty"`
	Ratio float32 `json:"ratio" default:"0.5"`
	// Some text.
	Text     string                     `json:"text" validate:"required,min=2,max=40" example:"some text"`
	Mail     string                     `json:"mail" validate:"omitempty,email"`
	Bytes    []byte                     `json:"bytes" validate:"omitempty"`
	When     time.Time                  `json:"when" validate:"omitempty"`
	HowLong  time.Duration              `json:"howLong" default:"90s"`
	Link     *url.URL                   `json:"link"`
	Address  netip.Addr                 `json:"address" validate:"omitempty"`
	Net      *netip.Prefix              `json:"net"`
	Big      *big.Int                   `json:"big"`
	Number   json.Number                `json:"number" validate:"omitempty"`
	Raw      json.RawMessage            `json:"raw" validate:"omitempty"`
	Any      any                        `json:"any" validate:"omitempty"`
	Priority Priority                   `json:"priority" validate:"omitempty,oneof=low high"`
	Day      Weekday                    `json:"day" validate:"omitempty"`
	Days     []Weekday                  `json:"days" validate:"omitempty,unique"`
	Grid     [][]int                    `json:"grid" validate:"omitempty"`
	Pair     [2]string                  `json:"pair" validate:"omitempty"`
	Place    *Place                     `json:"place"`
	Places   []Place                    `json:"places" validate:"omitempty"`
	Named    map[string]Place           `json:"named" validate:"omitempty"`
	ByNumber map[int][]string           `json:"byNumber" validate:"omitempty"`
	Page     Listed[Place]              `json:"page" validate:"omitempty"`
	Tree     Tree                       `json:"tree" validate:"omitempty"`
	Nested   struct{ Deep **string }    `json:"nested" validate:"omitempty"`
	Deep     map[string]map[string]bool `json:"deep" validate:"omitempty"`
	// Old is no longer looked at.
	//
	// Deprecated: use text.
	Old    string `json:"old" validate:"omitempty"`
	Hidden string `json:"-" validate:"omitempty"`
	Secret string `json:"secret" validate:"omitempty" secret:"true"`
}

// Everything takes one of each, and gives it back.
func (*surface) Everything(in Everything) Everything { return in }

// Grow returns the tree.
func (*surface) Grow(in Tree) *Tree { return &in }

// Count returns numbers one after the other.
func (*surface) Count(in struct {
	// How many.
	To int `json:"to" validate:"min=0,max=5" default:"3"`
}) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range in.To {
			if !yield(i) {
				return
			}
		}
	}
}

// Page returns a page of pages.
func (*surface) Page(in Listed[Listed[Priority]]) Listed[Listed[Priority]] { return in }

// Sum adds numbers.
func (*surface) Sum(a, b float64) float64 { return a + b }

// When returns the present, as scalars are.
func (*surface) When() (time.Time, error) { return time.Unix(0, 0).UTC(), nil }

// Table returns a map.
func (*surface) Table() map[string][]Place { return nil }

func (*surface) Whole() (*protocol.CallToolResult, error) { return &protocol.CallToolResult{}, nil }

// Exact has what JSON libraries like to bend.
type Exact struct {
	Signed   int64  `json:"signed" validate:"required"`
	Unsigned uint64 `json:"unsigned" validate:"required"`
	Off      bool   `json:"off" validate:"required"`
	Zero     int    `json:"zero" validate:"required"`
	Empty    string `json:"empty" validate:"required"`
}

// Exactly says what arrived, as Go prints it.
func (*surface) Exactly(in Exact) string {
	return fmt.Sprintf("%d %d %t %d %q", in.Signed, in.Unsigned, in.Off, in.Zero, in.Empty)
}

func surfaceTools(t *testing.T, p *peer) (list string, tools []protocol.Tool) {
	t.Helper()
	list = member(t, p.result("tools/list", "{}"), "tools")
	require.NoError(t, json.Unmarshal([]byte(list), &tools))
	require.NotEmpty(t, tools)
	return list, tools
}

// The golden file has the definitions that a model gets.
func TestSurface(t *testing.T) {
	list, _ := surfaceTools(t, modern(t, newServer(t, &surface{})))
	var got bytes.Buffer
	require.NoError(t, json.Indent(&got, []byte(list), "", "  "))
	got.WriteByte('\n')
	file := filepath.Join("testdata", "surface.json")
	if *updateSurface {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "%s; -update-surface writes it anew", file)
}

// Some clients break on schemas that are valid but unusual. No version gets such a schema.
func TestSchemasArePortable(t *testing.T) {
	srv := newServer(t, &surface{})
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125), legacy(t, srv, protocol.V20250618)} {
		_, tools := surfaceTools(t, p)
		for _, tool := range tools {
			for part, schema := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema} {
				if schema == nil {
					continue
				}
				var root map[string]any
				require.NoError(t, json.Unmarshal(schema, &root))
				w := schemaWalk{t: t, root: root}
				if part == "input" {
					require.Equal(t, "object", root["type"], tool.Name)
				}
				w.schema(tool.Name+" "+part, root)
				for name := range w.defs() {
					require.True(t, w.reaches(name, name, map[string]bool{}), "%s %s: $defs has %q, which does not contain itself", tool.Name, part, name)
				}
				compileSchema(t, schema)
			}
		}
	}
}

func compileSchema(t *testing.T, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("mem:///schema.json", doc))
	compiled, err := c.Compile("mem:///schema.json")
	require.NoError(t, err, "%s", schema)
	return compiled
}

// A schemaWalk looks at a schema and all within it.
type schemaWalk struct {
	t    *testing.T
	root map[string]any
}

func (w schemaWalk) defs() map[string]any {
	defs, _ := w.root["$defs"].(map[string]any)
	return defs
}

func (w schemaWalk) schema(at string, v any) {
	s, ok := v.(map[string]any)
	require.True(w.t, ok, "%s is %v, no object", at, v)
	if typ, ok := s["type"]; ok {
		require.IsType(w.t, "", typ, "%s: several types", at)
	}
	if s["type"] == "object" {
		require.Contains(w.t, s, "properties", at)
	}
	if s["type"] == "array" {
		require.Contains(w.t, s, "items", at)
	}
	if enum, ok := s["enum"]; ok {
		require.NotContains(w.t, enum, nil, at)
		require.NotEmpty(w.t, enum, at)
	}
	if ref, ok := s["$ref"].(string); ok {
		name, local := strings.CutPrefix(ref, "#/$defs/")
		require.True(w.t, local, "%s: %s", at, ref)
		require.Contains(w.t, w.defs(), name, at)
	}
	w.each(s, func(key string, sub any) { w.schema(at+"/"+key, sub) })
}

// each calls f with the schemas within s. "additionalProperties": false is not a schema.
func (w schemaWalk) each(s map[string]any, f func(key string, sub any)) {
	for _, key := range []string{"properties", "$defs", "patternProperties"} {
		m, _ := s[key].(map[string]any)
		for name, sub := range m {
			f(key+"/"+name, sub)
		}
	}
	for _, key := range []string{"items", "additionalProperties", "propertyNames", "not", "contains"} {
		if sub, ok := s[key]; ok && (key != "additionalProperties" || sub != false) {
			f(key, sub)
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for i, sub := range list {
			f(fmt.Sprintf("%s/%d", key, i), sub)
		}
	}
}

// reaches reports whether the definition leads to the name.
func (w schemaWalk) reaches(from, name string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	found := false
	var look func(string, any)
	look = func(_ string, v any) {
		s, _ := v.(map[string]any)
		if ref, ok := s["$ref"].(string); ok {
			to := strings.TrimPrefix(ref, "#/$defs/")
			found = found || to == name || w.reaches(to, name, seen)
		}
		w.each(s, look)
	}
	look("", w.defs()[from])
	return found
}

type calledTool struct {
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	IsError           bool
}

func callSurface(t *testing.T, p *peer, name, args string) calledTool {
	t.Helper()
	var r calledTool
	require.NoError(t, json.Unmarshal([]byte(p.result("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))), &r))
	return r
}

// Numbers arrive exactly as they were sent, and a zero does not count as absent.
func TestNumbersAreExactAndZeroesAreThere(t *testing.T) {
	srv := newServer(t, &surface{})
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125)} {
		r := callSurface(t, p, "exactly", `{"signed":9007199254740993,"unsigned":18446744073709551615,"off":false,"zero":0,"empty":""}`)
		require.False(t, r.IsError, r.Content)
		require.Equal(t, `9007199254740993 18446744073709551615 false 0 ""`, r.Content[0].Text)

		r = callSurface(t, p, "exactly", `{"signed":-9223372036854775808,"unsigned":0,"off":false,"zero":0,"empty":""}`)
		require.Equal(t, `-9223372036854775808 0 false 0 ""`, r.Content[0].Text)

		r = callSurface(t, p, "exactly", `{"signed":9223372036854775808,"unsigned":-1}`)
		require.True(t, r.IsError)
		for _, want := range []string{"5 problems with the arguments:", "/signed: ", "/unsigned: ", "/off: missing", "/zero: missing", "/empty: missing"} {
			require.Contains(t, r.Content[0].Text, want)
		}

		// And back again.
		r = callSurface(t, p, "everything", `{"flag":false,"text":"tea","large":9007199254740993,"count":18446744073709551615,"big":123456789012345678901234567890}`)
		require.False(t, r.IsError, r.Content)
		require.Contains(t, string(r.StructuredContent), `"large":9007199254740993`)
		require.Contains(t, string(r.StructuredContent), `"count":18446744073709551615`)
		require.Contains(t, string(r.StructuredContent), `123456789012345678901234567890`)
	}
}

// A type may contain itself. A reference describes it, and it is decoded to any depth.
func TestTypesThatContainThemselves(t *testing.T) {
	p := modern(t, newServer(t, &surface{}))
	deep := strings.Repeat(`{"label":"x","kids":[`, 20) + `{"label":"leaf"}` + strings.Repeat(`]}`, 20)
	r := callSurface(t, p, "grow", deep)
	require.False(t, r.IsError, r.Content)
	require.JSONEq(t, deep, string(r.StructuredContent))

	r = callSurface(t, p, "grow", `{"label":"a","kids":[{"label":"b","kids":[{"lable":"c"}]}]}`)
	require.True(t, r.IsError)
	require.Contains(t, r.Content[0].Text, `/kids/0/kids/0/lable: `)
	require.Contains(t, r.Content[0].Text, `did you mean "label"?`)
}
