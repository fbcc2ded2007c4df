package reflectx

import (
	"context"
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// makeExample makes an arguments object from the example tags, defaults, enums and rules. It keeps
// the object if the input accepts it.
func (in *Input) makeExample(root *spec) {
	raw, ok := exampleOf(root, map[*object]bool{})
	if !ok || in.Decode(context.Background(), raw, reflect.New(in.root.t).Elem()) != nil {
		return
	}
	in.example = raw
}

// exampleOf returns a value that n is likely to accept.
func exampleOf(n *spec, above map[*object]bool) (json.RawMessage, bool) {
	kw := n.kw
	switch {
	case kw.Const != nil:
		return appendValue(nil, kw.Const), true
	case len(kw.Enum) > 0:
		return appendValue(nil, kw.Enum[0]), true
	case len(kw.Examples) > 0:
		return appendValue(nil, kw.Examples[0]), true
	}
	switch n.shape {
	case shapeBool:
		return json.RawMessage("true"), true
	case shapeInt, shapeUint, shapeFloat, shapeNumber, shapeBig:
		return exampleNumber(n)
	case shapeString, shapeText:
		return exampleText(n)
	case shapeBytes:
		return json.RawMessage(`"aGVsbG8="`), true
	case shapeTime:
		return firstOf(n.node, "2006-01-02T15:04:05Z", "2999-12-31T00:00:00Z")
	case shapeDuration:
		return firstOf(n.node, "1h30m", "1s", "30s", "1m", "5m", "1h", "24h", "10ms", "500ms")
	case shapeURL:
		return json.RawMessage(`"https://example.com/"`), true
	case shapeSlice, shapeArray:
		return exampleArray(n, above)
	case shapeMap:
		return exampleMap(n, above)
	case shapeStruct:
		return exampleObject(n.obj, above)
	case shapeUnion:
		for _, one := range n.union.cases {
			if raw, ok := exampleObject(one.obj, above); ok {
				return raw, true
			}
		}
	case shapeAny, shapeRaw:
		return json.RawMessage(`"text"`), true
	}
	return nil, false
}

// firstOf returns the first of the texts that n accepts.
func firstOf(n *node, texts ...string) (json.RawMessage, bool) {
	for _, text := range texts {
		if raw := jsonx.AppendString(nil, text); n.accepts(raw) {
			return raw, true
		}
	}
	return nil, false
}

func exampleNumber(n *spec) (json.RawMessage, bool) {
	kw := n.kw
	try := []string{"1"}
	for _, limit := range []struct {
		bound json.Number
		by    int64
	}{{kw.Minimum, 0}, {kw.ExclusiveMinimum, 1}, {kw.Maximum, 0}, {kw.ExclusiveMaximum, -1}, {kw.MultipleOf, 0}} {
		r, ok := new(big.Rat).SetString(string(limit.bound))
		if !ok {
			continue
		}
		if limit.by == 0 {
			try = append(try, string(limit.bound))
		}
		r.Add(r, new(big.Rat).SetInt64(limit.by))
		try = append(try, r.FloatString(0), r.FloatString(1))
	}
	for _, text := range append(try, "0", "2", "10") {
		if n.accepts(json.RawMessage(text)) {
			return json.RawMessage(text), true
		}
	}
	return nil, false
}

// accepts reports whether n takes raw.
func (n *node) accepts(raw json.RawMessage) bool {
	d := decoder{b: raw, in: &Input{}, ctx: context.Background()}
	n.readValue(&d, n, 0, reflect.New(n.t).Elem())
	return len(d.violations) == 0
}

// exampleTexts are tried in turn for a string with rules, and for types that are decoded from text.
var exampleTexts = []string{
	"text", "a", "1", "10", "1.2.3", "user@example.com", "https://example.com/", "www.example.com", "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "192.0.2.0/24",
	"2001:db8::/32", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000", "0190163d-8694-739b-aea5-966c26f8ad91",
	"+4912345678", "2006-01-02", "2006-01-02T15:04:05Z", "15:04:05", "15:04", "#ff8800", "Europe/Berlin", "DE", "DEU", "EUR", "en-US", "de", "TEXT", "true", "{}",
	"aGVsbG8=", "0 5 * * *", "example.com:80", "00:00:5e:00:53:01", "ff", "4242424242424242", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "1h30m",
	"00000000-0000-3000-8000-000000000000", "00000000-0000-5000-8000-000000000000", "507f1f77bcf86cd799439011", "12-3456789", "123-45-6789", "DEUTDEFF",
	"0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe", "9783161484100", "data:text/plain;base64,aGVsbG8=", "<b>text</b>", "CVE-2024-12345", "a.b.c",
	"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "cmyk(10%,20%,30%,40%)", "hsl(120,50%,50%)", "hsla(120,50%,50%,0.5)",
	"rgb(1,2,3)", "rgba(1,2,3,0.5)", "&lt;", "0306406152", "0378-5955", "DE-BE", "mongodb://localhost:27017", "https://example.com", "document:1#reader", "urn:isbn:0451450523", "10115",
	strings.Repeat("0", 32), strings.Repeat("0", 64), strings.Repeat("0", 96), strings.Repeat("0", 128),
}

func exampleText(n *spec) (json.RawMessage, bool) {
	if raw, ok := firstOf(n.node, exampleTexts...); ok {
		return raw, true
	}
	try := slices.Clone(exampleTexts)
	all := ""
	for _, p := range n.phrases { // a required prefix, suffix or substring
		if i := strings.IndexByte(p, '"'); i >= 0 {
			part := jsonx.String([]byte(p[i:]))
			all += part
			try = append(try, part, part+"text", "text"+part, all)
		}
		if _, part, ok := strings.Cut(p, "="); ok {
			try = append(try, part)
		}
	}
	for _, text := range slices.Clone(try) {
		if low := n.kw.MinLength; low != nil && *low <= 1024 && uint64(len(text)) < *low {
			try = append(try, text+strings.Repeat("x", int(*low)-len(text)), strings.Repeat(text, int(*low)))
		}
		if high := n.kw.MaxLength; high != nil && uint64(len(text)) > *high {
			try = append(try, text[:*high])
		}
	}
	return firstOf(n.node, append(try, "")...)
}

func exampleArray(n *spec, above map[*object]bool) (json.RawMessage, bool) {
	length := exampleLength(n.kw.MinItems)
	if n.shape == shapeArray {
		length = n.t.Len()
	}
	elem, ok := exampleOf(n.elem, above)
	if !ok {
		return json.RawMessage("[]"), n.kw.MinItems == nil
	}
	return listed('[', ']', length, func(dst []byte, i int) []byte {
		if n.kw.UniqueItems && i > 0 {
			return append(dst, anotherExample(n.elem, elem, i)...)
		}
		return append(dst, elem...)
	}), true
}

// listed writes an array or object whose parts part appends.
func listed(open, closing byte, length int, part func(dst []byte, i int) []byte) json.RawMessage {
	out := []byte{open}
	for i := range length {
		if i > 0 {
			out = append(out, ',')
		}
		out = part(out, i)
	}
	return append(out, closing)
}

// exampleLength returns the length of the example of an array or a map with at least so many
// elements.
func exampleLength(least *uint64) int {
	if least == nil {
		return 1
	}
	return int(max(1, min(*least, 64)))
}

// anotherExample returns a value that differs from elem and those for a smaller i, if it knows one.
func anotherExample(n *spec, elem json.RawMessage, i int) json.RawMessage {
	switch {
	case i < len(n.kw.Enum):
		return appendValue(nil, n.kw.Enum[i])
	case n.shape == shapeString:
		return jsonx.AppendString(nil, jsonx.String(elem)+strconv.Itoa(i))
	case n.shape == shapeInt || n.shape == shapeUint:
		x, _ := strconv.ParseInt(string(elem), 10, 64)
		return strconv.AppendInt(nil, x+int64(i), 10)
	}
	return elem
}

func exampleMap(n *spec, above map[*object]bool) (json.RawMessage, bool) {
	elem, ok := exampleOf(n.elem, above)
	if !ok {
		return json.RawMessage("{}"), n.kw.MinProperties == nil
	}
	length := exampleLength(n.kw.MinProperties)
	return listed('{', '}', length, func(dst []byte, i int) []byte {
		dst = append(dst, exampleName(n.key, i, length)...)
		return append(append(dst, ':'), elem...)
	}), true
}

// exampleName returns the name of the member i of a map with count members.
func exampleName(key *spec, i, count int) []byte {
	name := "name"
	if count > 1 {
		name += strconv.Itoa(i + 1)
	}
	raw := jsonx.AppendString(nil, name)
	switch {
	case key.shape == shapeInt || key.shape == shapeUint:
		return jsonx.AppendString(nil, strconv.Itoa(i+1))
	case i < len(key.kw.Enum):
		return jsonx.AppendString(nil, enumText(key.kw.Enum[i]))
	case !key.accepts(raw):
		if other, ok := exampleText(key); ok {
			return other
		}
	}
	return raw
}

// exampleObject has the required members, and those with an example or a default.
func exampleObject(o *object, above map[*object]bool) (json.RawMessage, bool) {
	if o.known != nil {
		return o.known.example, o.known.example != nil
	}
	if above[o] {
		return nil, false
	}
	above[o] = true
	defer delete(above, o)
	out := []byte{'{'}
	for _, f := range o.fields {
		var raw json.RawMessage
		ok := true
		switch {
		case f.example != nil:
			raw = f.example
		case f.Default != nil:
			raw = f.Default
		case f.Required || o.needs(f):
			raw, ok = exampleOf(f.spec, above)
		default:
			continue
		}
		if !ok {
			return nil, false
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonx.AppendString(out, f.Name), ':')
		out = append(out, raw...)
	}
	return append(out, '}'), true
}

// needs reports whether a rule requires f if only the required members are present.
func (o *object) needs(f *field) bool {
	for _, r := range o.rules {
		if r.field == f && !r.exclude {
			return true
		}
	}
	return false
}
