package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// around is about how many bytes a result has besides its content.
const around = 256

// AppendResult appends the result of a request as clients of a version know it. What the version lacks
// becomes text or is left out. Modern clients get the resultType, "complete" unless there is another
// one, and the members of server in _meta. result is any value that encodes to a JSON object.
func AppendResult(dst []byte, result any, v Version, server Meta) ([]byte, error) {
	switch r := result.(type) { // not what embeds one of these, and encodes itself
	case *CallToolResult:
		return r.appendFor(slices.Grow(dst, r.ContentSize()+escapes(r.Content)+around), v, server)
	case *GetPromptResult:
		return r.appendFor(slices.Grow(dst, r.ContentSize()+around), v, server)
	case *ReadResourceResult:
		return r.appendFor(slices.Grow(dst, r.ContentSize()+around), v, server)
	}
	object, err := jsonx.Marshal(result)
	if err != nil {
		return dst, err
	}
	if jsonx.Kind(object) != '{' {
		return dst, fmt.Errorf("a result is a JSON object, and this is a %T: %.20s", result, object)
	}
	var common struct {
		ResultType string `json:"resultType,omitzero"`
		Meta       Meta   `json:"_meta,omitzero"`
	}
	if err := jsonx.Unmarshal(object, &common); err != nil {
		return dst, err
	}
	if err := setCommon(v, &common.ResultType, &common.Meta, server); err != nil {
		return dst, err
	}
	rest, err := jsonx.Marshal(common)
	dst = jsonx.AppendEdited(dst, object, func(name, value []byte) []byte {
		if jsonx.IsString(name, "resultType") || jsonx.IsString(name, "_meta") {
			return nil
		}
		return value
	})
	dst = dst[:len(dst)-1]
	for name, value := range jsonx.Members(rest) {
		dst = jsonx.AppendMember(dst, name, value)
	}
	return append(dst, '}'), err
}

// appendFor: an error has no structured content, since it has no output for the output schema. Up to
// and including 2025-11-25 structured content is an object: other values become {"result": value}, as
// output schemas do.
func (r *CallToolResult) appendFor(dst []byte, v Version, server Meta) ([]byte, error) {
	own := *r
	if v < V20250618 {
		own.Content = make([]Content, len(r.Content))
		for i, c := range r.Content {
			own.Content[i] = contentFor(v, c)
		}
	}
	own.StructuredContent = structuredFor(v, r)
	if err := setCommon(v, &own.ResultType, &own.Meta, server); err != nil {
		return dst, err
	}
	return own.AppendJSON(dst)
}

func (r *GetPromptResult) appendFor(dst []byte, v Version, server Meta) ([]byte, error) {
	own := *r
	own.Messages = make([]PromptMessage, len(r.Messages))
	for i, m := range r.Messages {
		own.Messages[i] = PromptMessage{Role: m.Role, Content: contentFor(v, m.Content)}
	}
	if err := setCommon(v, &own.ResultType, &own.Meta, server); err != nil {
		return dst, err
	}
	return jsonx.Append(dst, own)
}

// appendFor: legacy clients get no cache hint.
func (r *ReadResourceResult) appendFor(dst []byte, v Version, server Meta) ([]byte, error) {
	own := *r
	if !v.Modern() {
		own.Cache = Cache{}
	}
	if err := setCommon(v, &own.ResultType, &own.Meta, server); err != nil {
		return dst, err
	}
	return own.AppendJSON(dst)
}

// setCommon sets the members that all modern results have, and removes them for legacy clients, which only
// know complete results.
func setCommon(v Version, resultType *string, meta *Meta, server Meta) error {
	if !v.Modern() {
		if *resultType != "" && *resultType != ResultComplete {
			return fmt.Errorf("clients of version %s have no results of type %q", v, *resultType)
		}
		*resultType = ""
		return nil
	}
	*resultType = cmp.Or(*resultType, ResultComplete)
	if *meta == nil {
		*meta = server
		return nil
	}
	all := Meta{}
	maps.Copy(all, server)
	maps.Copy(all, *meta)
	*meta = all
	return nil
}

// escapes returns how many bytes the escapes in texts take that are frequent in large ones.
func escapes(contents []Content) (n int) {
	for _, c := range contents {
		if t, ok := c.(*TextContent); ok {
			n += strings.Count(t.Text, `"`) + strings.Count(t.Text, `\`) + strings.Count(t.Text, "\n")
		}
	}
	return n
}

func structuredFor(v Version, r *CallToolResult) json.RawMessage {
	value := r.StructuredContent
	switch {
	case value == nil || r.IsError || v < V20250618:
		return nil
	case v.Modern() || jsonx.Kind(bytes.TrimLeft(value, " \t\r\n")) == '{' || !jsonx.Valid(value):
		return value
	}
	return append(append([]byte(`{"result":`), value...), '}')
}

// contentFor replaces content that the version does not have by a text.
func contentFor(v Version, c Content) Content {
	switch c := c.(type) {
	case *AudioContent:
		if v < V20250326 {
			return &TextContent{Text: fmt.Sprintf("[audio, %s, %d bytes: needs a newer client]", c.MIMEType, len(c.Data))}
		}
	case *ResourceLink:
		if v < V20250618 {
			return &TextContent{Text: c.URI}
		}
	}
	return c
}

// ContentSize returns how many bytes of texts, data and structured content the result has.
func (r *CallToolResult) ContentSize() int {
	if r == nil {
		return 0
	}
	n := len(r.StructuredContent)
	for _, c := range r.Content {
		n += contentSize(c)
	}
	return n
}

// ContentSize returns how many bytes of texts and data the result has.
func (r *GetPromptResult) ContentSize() int {
	if r == nil {
		return 0
	}
	n := 0
	for _, m := range r.Messages {
		n += contentSize(m.Content)
	}
	return n
}

// ContentSize returns how many bytes of texts and data the result has.
func (r *ReadResourceResult) ContentSize() int {
	if r == nil {
		return 0
	}
	n := 0
	for i := range r.Contents {
		n += r.Contents[i].size()
	}
	return n
}

func (r *ResourceContents) size() int {
	if r.Text != nil {
		return len(*r.Text) + len(r.Blob)
	}
	return len(r.Blob)
}

func contentSize(c Content) int {
	switch c := c.(type) {
	case *TextContent:
		return len(c.Text)
	case *ImageContent:
		return len(c.Data)
	case *AudioContent:
		return len(c.Data)
	case *EmbeddedResource:
		return c.Resource.size()
	case *ResourceLink:
		return len(c.URI)
	case *UnknownContent:
		return len(c.Raw)
	}
	return 0
}
