package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// appendRaw appends raw, which comes from outside this package. It checks raw first: a broken or
// indented value would break the message, or the line, that it becomes part of.
func appendRaw(dst, raw []byte) ([]byte, error) {
	if raw == nil {
		return append(dst, "null"...), nil
	}
	if !jsonx.Valid(raw) {
		return dst, errors.New("not valid JSON")
	}
	n := len(dst)
	dst = append(dst, raw...)
	for _, c := range raw {
		if c <= ' ' && c != ' ' {
			compact, err := jsonx.Compact(dst[n:])
			return append(dst[:n], compact...), err
		}
	}
	return dst, nil
}

// appendObject appends the members of m, sorted, as a JSON object.
func appendObject[M ~map[string]json.RawMessage](dst []byte, m M) ([]byte, error) {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonx.AppendString(dst, key)
		dst = append(dst, ':')
		var err error
		if dst, err = appendRaw(dst, m[key]); err != nil {
			return dst, wrap(key, err)
		}
	}
	return append(dst, '}'), nil
}

// appendText appends a member with a text, with a comma before it, unless the text is "".
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return jsonx.AppendString(dst, text)
}

// appendMeta appends the member _meta, with a comma before it, unless m is nil.
func appendMeta(dst []byte, m Meta) ([]byte, error) {
	if m == nil {
		return dst, nil
	}
	dst = append(dst, `,"_meta":`...)
	dst, err := appendObject(dst, m)
	if err != nil {
		return dst, wrap("_meta", err)
	}
	return dst, nil
}

func braced(dst []byte, members func([]byte) ([]byte, error)) ([]byte, error) {
	dst, err := members(append(dst, '{'))
	return append(dst, '}'), err
}

func wrap(member string, err error) error { return fmt.Errorf("%s: %w", member, err) }
