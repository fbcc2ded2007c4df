package mcptest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// The kinds of differences.
const (
	breaking = "breaking"
	additive = "additive"
	unclear  = "breaking?" // for a person to decide
)

// A differ collects the differences, one line each.
type differ struct{ lines []string }

func (d *differ) say(kind, where, format string, args ...any) {
	d.lines = append(d.lines, kind+": "+where+fmt.Sprintf(format, args...))
}

// changed reports a value before and after.
func (d *differ) changed(kind, where string, was, is []byte) {
	before, _ := canonical(was)
	after, _ := canonical(is)
	d.say(kind, where, " changed\n  was: %s\n  is:  %s", cmp.Or(before, "(none)"), cmp.Or(after, "(none)"))
}

// diffSurfaces returns the differences of two surfaces.
func diffSurfaces(was, is *surface) []string {
	var d differ
	d.things("tool", was.Tools, is.Tools, d.tool)
	d.things("prompt", was.Prompts, is.Prompts, d.prompt)
	d.things("resource", was.Resources, is.Resources, d.resource)
	d.things("resource template", was.Templates, is.Templates, d.resource)
	return d.lines
}

// things compares two sets by name, and calls each for entries that are in both but differ.
func (d *differ) things(kind string, was, is map[string]json.RawMessage, each func(where string, was, is []byte)) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		switch {
		case is[name] == nil:
			d.say(breaking, fmt.Sprintf("%s %q", kind, name), " removed")
		case !same(was[name], is[name]):
			each(fmt.Sprintf("%s %q: ", kind, name), was[name], is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] == nil {
			d.say(additive, fmt.Sprintf("%s %q", kind, name), " added")
		}
	}
}

func same(a, b []byte) bool {
	before, _ := canonical(a)
	after, _ := canonical(b)
	return before == after
}

func (d *differ) tool(where string, was, is []byte) {
	d.schema(where, "input", jsonx.Member(was, "inputSchema"), jsonx.Member(is, "inputSchema"), narrowing)
	switch before, after := jsonx.Member(was, "outputSchema"), jsonx.Member(is, "outputSchema"); {
	case before == nil && after != nil:
		d.say(additive, where, "output schema added")
	case before != nil && after == nil:
		d.say(breaking, where, "output schema removed")
	default:
		d.schema(where, "output", before, after, widening)
	}
	d.descriptions(where, was, is)
	d.rest(where, was, is, "inputSchema", "outputSchema")
}

func (d *differ) prompt(where string, was, is []byte) {
	before, wasRequired := arguments(was)
	after, required := arguments(is)
	d.fields(where, "argument", before, after, wasRequired, required, narrowing)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != nil {
			place := fmt.Sprintf("%sargument %q: ", where, name)
			d.descriptions(place, before[name], after[name])
			d.rest(place, before[name], after[name], "required")
		}
	}
	d.descriptions(where, was, is)
	d.rest(where, was, is, "arguments")
}

// arguments returns the arguments of a prompt by name, and which are required.
func arguments(prompt []byte) (all map[string]json.RawMessage, required map[string]bool) {
	all, required = map[string]json.RawMessage{}, map[string]bool{}
	for a := range jsonx.Elements(jsonx.Member(prompt, "arguments")) {
		name := jsonx.String(jsonx.Member(a, "name"))
		all[name], required[name] = a, string(jsonx.Member(a, "required")) == "true"
	}
	return all, required
}

func (d *differ) resource(where string, was, is []byte) {
	if before, after := jsonx.Member(was, "mimeType"), jsonx.Member(is, "mimeType"); !same(before, after) {
		d.changed(breaking, where+"mimeType", before, after)
	}
	d.descriptions(where, was, is)
	d.rest(where, was, is, "mimeType")
}

// descriptions compares the texts and icons that do not affect callers.
func (d *differ) descriptions(where string, was, is []byte) {
	for _, name := range []string{"description", "title", "icons"} {
		if !same(jsonx.Member(was, name), jsonx.Member(is, name)) {
			d.say(additive, where, "%s changed", name)
		}
	}
}

// rest compares the remaining members.
func (d *differ) rest(where string, was, is []byte, but ...string) {
	but = append(but, "name", "uri", "uriTemplate", "description", "title", "icons")
	names := map[string]bool{}
	for _, obj := range [][]byte{was, is} {
		for name := range jsonx.Members(obj) {
			if n := jsonx.String(name); !slices.Contains(but, n) {
				names[n] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if before, after := jsonx.Member(was, name), jsonx.Member(is, name); !same(before, after) {
			d.changed(unclear, where+name, before, after)
		}
	}
}

// A direction is the change of a schema that breaks callers. Inputs must not become narrower,
// outputs must not become wider.
type direction int

const (
	narrowing direction = iota
	widening
)

// kind returns the kind of a change that narrows or widens a schema.
func (b direction) kind(narrower bool) string {
	if narrower == (b == narrowing) {
		return breaking
	}
	return additive
}

// bounds are the keywords for limits. True means that a greater value is narrower.
var bounds = map[string]bool{
	"minimum": true, "exclusiveMinimum": true, "minLength": true, "minItems": true, "minProperties": true,
	"maximum": false, "exclusiveMaximum": false, "maxLength": false, "maxItems": false, "maxProperties": false,
}

// schema compares two schemas of inputs or outputs, and the schemas in them. place names the value.
func (d *differ) schema(where, place string, was, is []byte, b direction) {
	if same(was, is) {
		return
	}
	field := "field"
	if place == "input" {
		field = "argument" // of the tool
	}
	at := where + place
	if before, after := jsonx.String(jsonx.Member(was, "type")), jsonx.String(jsonx.Member(is, "type")); before != after {
		kind := breaking
		if before == "integer" && after == "number" || before == "number" && after == "integer" {
			kind = b.kind(after == "integer")
		}
		d.say(kind, at, " is %s, was %s", cmp.Or(after, "of any type"), cmp.Or(before, "of any type"))
	}
	d.enum(at, jsonx.Member(was, "enum"), jsonx.Member(is, "enum"), b)
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		d.bound(at+": "+name, jsonx.Member(was, name), jsonx.Member(is, name), bounds[name], b)
	}
	before, after := members(jsonx.Member(was, "properties")), members(jsonx.Member(is, "properties"))
	d.fields(where, fieldOf(place, field), before, after, names(was), names(is), b)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] != nil {
			d.schema(where, fmt.Sprintf("%s %q", fieldOf(place, field), name), before[name], after[name], b)
		}
	}
	if was, is := jsonx.Member(was, "items"), jsonx.Member(is, "items"); was != nil && is != nil {
		d.schema(where, place+": items", was, is, b)
	} else if was != nil || is != nil {
		d.changed(b.kind(is != nil), at+": items", was, is)
	}
	d.descriptions(at+": ", was, is)
	d.rest(at+": ", was, is, append(slices.Collect(maps.Keys(bounds)), "type", "enum", "properties", "required", "items")...)
}

// fieldOf returns how messages name the fields of a place.
func fieldOf(place, field string) string {
	if field == "argument" {
		return field
	}
	return place + ": " + field
}

// fields compares which fields exist and which are required.
func (d *differ) fields(where, field string, was, is map[string]json.RawMessage, wasRequired, required map[string]bool, b direction) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		at := fmt.Sprintf("%s%s %q", where, field, name)
		switch before, after := wasRequired[name], required[name]; {
		case is[name] == nil:
			d.say(breaking, at, " removed")
		case after && !before:
			d.say(b.kind(true), at, " is required now")
		case before && !after:
			d.say(b.kind(false), at, " is optional now")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		at := fmt.Sprintf("%s%s %q", where, field, name)
		switch {
		case was[name] != nil:
		case required[name] && b == narrowing:
			d.say(breaking, at, " added, and required")
		default:
			d.say(additive, at, " added")
		}
	}
}

// enum compares the allowed values. Without any, all values are allowed.
func (d *differ) enum(at string, was, is []byte, b direction) {
	switch {
	case was == nil && is == nil:
		return
	case was == nil || is == nil:
		d.changed(b.kind(is != nil), at+": enum", was, is)
		return
	}
	before, after := values(was), values(is)
	for _, v := range before {
		if !slices.Contains(after, v) {
			d.say(b.kind(true), at, ": the value %s removed", v)
		}
	}
	for _, v := range after {
		if !slices.Contains(before, v) {
			d.say(b.kind(false), at, ": the value %s added", v)
		}
	}
}

func values(enum []byte) (all []string) {
	for e := range jsonx.Elements(enum) {
		v, _ := canonical(e)
		all = append(all, v)
	}
	return all
}

// bound compares one limit. No limit is wider than any limit.
func (d *differ) bound(at string, was, is []byte, greaterNarrows bool, b direction) {
	if same(was, is) {
		return
	}
	narrower := was == nil
	if was != nil && is != nil {
		x, err1 := strconv.ParseFloat(string(was), 64)
		y, err2 := strconv.ParseFloat(string(is), 64)
		if err1 != nil || err2 != nil {
			d.changed(unclear, at, was, is)
			return
		}
		narrower = (y > x) == greaterNarrows
	}
	d.changed(b.kind(narrower), at, was, is)
}

func names(schema []byte) map[string]bool {
	all := map[string]bool{}
	for name := range jsonx.Elements(jsonx.Member(schema, "required")) {
		all[jsonx.String(name)] = true
	}
	return all
}
