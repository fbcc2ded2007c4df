package reflectx

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// DecodeText is like [Input.Decode] for values that are text: variables of a URI, arguments of a
// prompt. get returns the text of the member name, and whether it was given. A string is the text
// itself, other scalars, arrays and objects are decoded as JSON; an array of scalars may also be
// separated by commas.
func (in *Input) DecodeText(ctx context.Context, get func(name string) (string, bool), v reflect.Value) error {
	args := []byte{'{'}
	for i := range in.root.props {
		p := &in.root.props[i]
		if text, ok := get(p.name); ok {
			args = append(jsonx.AppendString(jsonx.AppendComma(args), p.name), ':')
			args = appendText(args, p.node, text)
		}
	}
	return in.Decode(ctx, append(args, '}'), v)
}

// appendText appends the JSON value of text for n. A text that does not fit becomes a JSON string,
// so that the check reports what is allowed.
func appendText(dst []byte, n *node, text string) []byte {
	trimmed := strings.TrimSpace(text)
	isJSON := jsonx.Valid([]byte(trimmed))
	switch n.kind {
	case '"':
		isJSON = false
	case 0: // a text is as good as any other value
		isJSON = isJSON && strings.ContainsAny(trimmed[:1], "{[")
	case '[':
		if isJSON = isJSON && trimmed[0] == '['; !isJSON && (n.items == nil || n.items.kind != '[' && n.items.kind != '{') {
			return appendList(dst, n.items, text)
		}
	case '{':
	default:
		isJSON = isJSON && trimmed[0] != '"'
	}
	if isJSON {
		return append(dst, trimmed...)
	}
	return jsonx.AppendString(dst, text)
}

// appendList appends the parts of a text between commas.
func appendList(dst []byte, elem *node, text string) []byte {
	dst = append(dst, '[')
	if text != "" {
		for part := range strings.SplitSeq(text, ",") {
			dst = appendText(jsonx.AppendComma(dst), elem, strings.TrimSpace(part))
		}
	}
	return append(dst, ']')
}

// textJSON returns the JSON for the text of a tag: strings are taken as text, other values as JSON.
func textJSON(s *jsonschema.Schema, text string) json.RawMessage {
	raw := []byte(strings.TrimSpace(text))
	if s.Type == "string" || !jsonx.Valid(raw) {
		return jsonx.AppendString(nil, text)
	}
	raw, _ = jsonx.Compact(raw)
	return raw
}

// mend handles a value at i that is of the wrong kind for n. If repairs are on and one is
// unambiguous, it checks the repaired value in its place, and returns the index after the value.
func (k *checker) mend(n *node, i int) (end int, ok bool) {
	if !k.repair || n.never {
		return 0, false
	}
	end = jsonx.Skip(k.b, i)
	raw := k.b[i:end]
	var better []byte
	if raw[0] == '"' {
		if inner := bytes.TrimSpace([]byte(jsonx.String(raw))); jsonx.Valid(inner) && n.takes(inner[0]) && inner[0] != '"' {
			better = inner
		}
	}
	if better == nil && n.kind == '[' && raw[0] != 'n' && n.items != nil && n.items.takes(raw[0]) {
		better = slices.Concat([]byte("["), raw, []byte("]"))
	}
	if better == nil {
		return 0, false
	}
	inner := checker{ctx: k.ctx, b: better, path: k.path, secret: k.secret}
	inner.value(n, 0)
	for _, v := range inner.err.Violations {
		k.err.add(v)
	}
	k.err.more += inner.err.more
	if len(inner.err.Violations) == 0 {
		k.edits = append(k.edits, edit{from: i, to: end, text: inner.edited()})
		if k.repaired != nil {
			k.repaired(k.ctx)
		}
	}
	return end, true
}
