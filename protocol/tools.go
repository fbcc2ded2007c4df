package protocol

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Tool describes a tool to clients and models.
type Tool struct {
	Name         string           `json:"name"`
	Title        string           `json:"title,omitzero"` // 2025-06-18 and later
	Description  string           `json:"description,omitzero"`
	Icons        []Icon           `json:"icons,omitzero"`        // 2025-11-25 and later
	InputSchema  json.RawMessage  `json:"inputSchema"`           // a JSON Schema with "type": "object"; nil is written as the schema of no arguments
	OutputSchema json.RawMessage  `json:"outputSchema,omitzero"` // 2025-06-18 and later; an object at the root until 2025-11-25
	Annotations  *ToolAnnotations `json:"annotations,omitzero"`  // 2025-03-26 and later
	Execution    *ToolExecution   `json:"execution,omitzero"`    // 2025-11-25 alone
	Meta         Meta             `json:"_meta,omitzero"`        // 2025-06-18 and later
}

// MarshalJSON writes the tool; one without an input schema is written as one without arguments.
func (t Tool) MarshalJSON() ([]byte, error) {
	type plain Tool
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return jsonx.Marshal(plain(t))
}

// ToolAnnotations are hints about what a tool does. A nil hint is not said; then the
// specification's default holds, which each field names. Clients must not trust the hints of
// servers that they do not trust.
type ToolAnnotations struct {
	Title           string `json:"title,omitzero"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`    // changes nothing; default false
	DestructiveHint *bool  `json:"destructiveHint,omitzero"` // may destroy, not only add; default true
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`  // calling again changes nothing more; default false
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`   // reaches out of a closed domain; default true
}

// A ToolExecution says how a tool may be run. Of 2025-11-25 alone.
type ToolExecution struct {
	TaskSupport string `json:"taskSupport,omitzero"` // "forbidden" (the default), "optional" or "required"
}

// A ListToolsResult is a page of tools.
type ListToolsResult struct {
	Tools      []Tool  `json:"tools"`
	NextCursor *string `json:"nextCursor,omitzero"` // nil on the last page
	Cache
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// MarshalJSON writes the page; no tools are [].
func (r ListToolsResult) MarshalJSON() ([]byte, error) {
	type plain ListToolsResult
	return jsonx.Marshal(plain(r))
}

// CallToolParams call a tool.
type CallToolParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // an object; nil when absent
	Task      json.RawMessage `json:"task,omitzero"`      // 2025-11-25 alone
	Inputs
	Meta Meta `json:"_meta,omitzero"`
}

// A CallToolResult is what a tool returned.
type CallToolResult struct {
	Content []Content
	// StructuredContent is JSON; nil when absent, and `null` where the output is null. Since
	// 2025-06-18; an object until 2025-11-25, any value later.
	StructuredContent json.RawMessage
	IsError           bool // the tool failed, and Content says how
	ResultType        string
	Meta              Meta

	// Extra are members that no revision has. They go out as they came in.
	Extra map[string]json.RawMessage

	// saidFalse tells that isError came as false, which means what its absence means. It goes out
	// again as it came, so that a proxy does not change what it carries.
	saidFalse bool
}

// AppendMembers appends the members of the result, separated by commas and without the braces
// around them, so that the caller can add its own. It writes at least content.
func (r *CallToolResult) AppendMembers(dst []byte) ([]byte, error) {
	dst = append(dst, `"content":`...)
	dst, err := appendContents(dst, r.Content)
	if err != nil {
		return dst, err
	}
	if r.StructuredContent != nil {
		dst = append(dst, `,"structuredContent":`...)
		if dst, err = appendRaw(dst, r.StructuredContent); err != nil {
			return dst, wrap("structuredContent", err)
		}
	}
	switch {
	case r.IsError:
		dst = append(dst, `,"isError":true`...)
	case r.saidFalse:
		dst = append(dst, `,"isError":false`...)
	}
	if r.ResultType != "" {
		dst = append(dst, `,"resultType":`...)
		dst = jsonx.AppendString(dst, r.ResultType)
	}
	if r.Extra != nil {
		var err error
		if dst, err = r.AppendExtra(dst); err != nil {
			return dst, err
		}
	}
	return appendMeta(dst, r.Meta)
}

// AppendExtra appends the members of Extra, sorted by name, with a comma before each. Names that
// the protocol has are left out.
func (r *CallToolResult) AppendExtra(dst []byte) ([]byte, error) {
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		switch name {
		case "content", "structuredContent", "isError", "resultType", "_meta":
			continue
		}
		dst = append(jsonx.AppendString(append(dst, ','), name), ':')
		var err error
		if dst, err = appendRaw(dst, r.Extra[name]); err != nil {
			return dst, wrap(name, err)
		}
	}
	return dst, nil
}

// AppendJSON appends the result as a JSON object.
func (r *CallToolResult) AppendJSON(dst []byte) ([]byte, error) {
	return braced(dst, r.AppendMembers)
}

// MarshalJSON writes the result.
func (r CallToolResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// UnmarshalJSON reads a result.
func (r *CallToolResult) UnmarshalJSON(data []byte) error {
	if read, ok := readToolResult(data, true); ok {
		*r = read
		return nil
	}
	return r.decode(data)
}

// decode reads a result of any kind.
func (r *CallToolResult) decode(data []byte) error {
	var w struct {
		Content           Contents        `json:"content"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		IsError           *bool           `json:"isError"`
		ResultType        string          `json:"resultType"`
		Meta              Meta            `json:"_meta"`

		Extra map[string]json.RawMessage `json:",embed"`
	}
	if err := jsonx.Unmarshal(data, &w); err != nil {
		return err
	}
	*r = CallToolResult{
		Extra:             w.Extra,
		Content:           w.Content,
		StructuredContent: w.StructuredContent,
		IsError:           w.IsError != nil && *w.IsError,
		ResultType:        w.ResultType,
		Meta:              w.Meta,
		saidFalse:         w.IsError != nil && !*w.IsError,
	}
	return nil
}

// readToolResult reads a result without anything unusual in it, once over. It reports false for
// what is to be read with more care, or is wrong.
func readToolResult(data []byte, whole bool) (r CallToolResult, ok bool) {
	i := jsonx.SkipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return r, false
	}
	var seen [5]bool
	for i = jsonx.SkipSpace(data, i+1); i < len(data) && data[i] != '}'; i = more(data, i) {
		name, at := memberAt(data, i)
		if at >= len(data) {
			return r, false
		}
		which := -1
		if which, i = r.readMember(data, name, at, whole); which < 0 || i < 0 || seen[which] {
			return r, false
		}
		seen[which] = true
	}
	return r, i < len(data) && jsonx.SkipSpace(data, i+1) == len(data)
}

// ReadToolOutput reads of a valid result what programs read that know its output schema: all but
// the content, which for models says the same again. It reports false for a result without
// structured content, for one that is an error, and for one with anything unusual in it: they are
// to be decoded whole. The structured content is part of data.
func ReadToolOutput(data []byte) (*CallToolResult, bool) {
	r, ok := readToolResult(data, false)
	return &r, ok && r.StructuredContent != nil && !r.IsError
}

// memberAt returns the name of the member at data[i], with its quotes, and where its value is.
func memberAt(data []byte, i int) (name []byte, value int) {
	end := jsonx.Skip(data, i)
	return data[i:end], jsonx.SkipSpace(data, jsonx.SkipSpace(data, end)+1)
}

// more returns the index of what comes after a member or an element that ends at i: the next one,
// or the bracket.
func more(data []byte, i int) int {
	if i = jsonx.SkipSpace(data, i); i < len(data) && data[i] == ',' {
		return jsonx.SkipSpace(data, i+1)
	}
	return i
}

// readMember reads a member whose value is at data[at]. It says which one it was and where it ends,
// -1 where it is unusual.
func (r *CallToolResult) readMember(data, name []byte, at int, whole bool) (which, end int) {
	switch string(name) {
	case `"content"`:
		if !whole {
			if data[at] != '[' {
				return -1, -1
			}
			return 0, jsonx.Skip(data, at)
		}
		r.Content, end = readTexts(data, at)
		return 0, end
	case `"structuredContent"`:
		if end = jsonx.SkipDistinct(data, at); end > at {
			r.StructuredContent = data[at:end:end]
			if whole {
				r.StructuredContent = bytes.Clone(r.StructuredContent)
			}
		}
		return 1, end
	case `"isError"`:
		if end = jsonx.Skip(data, at); data[at] != 't' && data[at] != 'f' {
			return -1, -1
		}
		r.IsError, r.saidFalse = data[at] == 't', data[at] == 'f'
		return 2, end
	case `"resultType"`:
		if end = jsonx.Skip(data, at); data[at] != '"' {
			return -1, -1
		}
		r.ResultType = jsonx.String(data[at:end])
		return 3, end
	case `"_meta"`:
		if end = jsonx.SkipDistinct(data, at); end < 0 || data[at] != '{' {
			return -1, -1
		}
		r.Meta = Meta{}
		for key, v := range jsonx.Members(data[at:end]) {
			r.Meta[jsonx.String(key)] = bytes.Clone(v)
		}
		return 4, end
	}
	return -1, -1
}

// readTexts reads an array of blocks that are nothing but text.
func readTexts(data []byte, i int) (out []Content, end int) {
	if data[i] != '[' {
		return nil, -1
	}
	out = []Content{}
	for i = jsonx.SkipSpace(data, i+1); i < len(data) && data[i] != ']'; i = more(data, i) {
		var text string
		if text, i = readText(data, i); i < 0 {
			return nil, -1
		}
		out = append(out, &TextContent{Text: text})
	}
	if i >= len(data) {
		return nil, -1
	}
	return out, i + 1
}

// readText reads a block that is nothing but text.
func readText(data []byte, i int) (text string, end int) {
	if data[i] != '{' {
		return "", -1
	}
	var body []byte
	typed := false
	for i = jsonx.SkipSpace(data, i+1); i < len(data) && data[i] != '}'; i = more(data, i) {
		name, at := memberAt(data, i)
		if at >= len(data) {
			return "", -1
		}
		i = jsonx.Skip(data, at)
		value := data[at:i]
		switch {
		case string(name) == `"type"` && !typed && string(value) == `"text"`:
			typed = true
		case string(name) == `"text"` && body == nil && data[at] == '"':
			body = value
		default:
			return "", -1
		}
	}
	if !typed || body == nil || i >= len(data) {
		return "", -1
	}
	return jsonx.String(body), i + 1
}
