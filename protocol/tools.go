package protocol

import (
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
	OutputSchema json.RawMessage  `json:"outputSchema,omitzero"` // 2025-06-18 and later; up to 2025-11-25 it must describe an object
	Annotations  *ToolAnnotations `json:"annotations,omitzero"`  // 2025-03-26 and later
	Execution    *ToolExecution   `json:"execution,omitzero"`    // 2025-11-25 only
	Meta         Meta             `json:"_meta,omitempty"`       // 2025-06-18 and later
}

// MarshalJSON writes the tool; one without an input schema is written as one without arguments.
func (t Tool) MarshalJSON() ([]byte, error) {
	type plain Tool
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return jsonx.Marshal(plain(t))
}

// ToolFor returns the definition of a tool, a JSON object, in the form for a version: before
// 2025-06-18 without the outputSchema and with the title in the annotations, too; up to and including
// 2025-11-25 with the schema of {"result": value} if it does not describe an object.
func ToolFor(v Version, definition json.RawMessage) json.RawMessage {
	if v.Modern() {
		return definition
	}
	if title := jsonx.Member(definition, "title"); v < V20250618 && title != nil {
		definition = jsonx.With(definition, "annotations", jsonx.With(jsonx.Member(definition, "annotations"), "title", title))
	}
	switch schema := jsonx.Member(definition, "outputSchema"); {
	case schema != nil && v < V20250618:
		return jsonx.With(definition, "outputSchema", nil)
	case schema != nil && !jsonx.IsString(jsonx.Member(schema, "type"), "object"):
		return jsonx.With(definition, "outputSchema", wrapSchema(schema))
	}
	return definition
}

// wrapSchema returns the schema of {"result": value}. $defs move to the root, which references
// point to.
func wrapSchema(schema []byte) []byte {
	b := append([]byte(`{"type":"object","properties":{"result":`), jsonx.With(schema, "$defs", nil)...)
	b = append(b, `},"required":["result"],"additionalProperties":false}`...)
	return jsonx.With(b, "$defs", jsonx.Member(schema, "$defs"))
}

// ToolAnnotations are hints about what a tool does. A nil hint is absent and has the
// specification's default, which each field names. Clients must not trust the hints of servers that
// they do not trust.
type ToolAnnotations struct {
	Title           string `json:"title,omitzero"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`    // does not change anything; default false
	DestructiveHint *bool  `json:"destructiveHint,omitzero"` // may delete or overwrite, not only add; default true
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`  // a second identical call has no further effect; default false
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`   // interacts with an open set of external systems; default true
}

// Repeatable reports whether a second identical call does no harm: the tool only reads, or is
// idempotent. Nil annotations say nothing.
func (a *ToolAnnotations) Repeatable() bool {
	is := func(hint *bool) bool { return hint != nil && *hint }
	return a != nil && (is(a.ReadOnlyHint) || is(a.IdempotentHint))
}

// OnlyAsTask reports whether the list says that the tool runs only as a task: with Execution in
// 2025-11-25. Lists of modern versions have no such member, except for [MetaTaskSupport] of servers
// that use this module. A call of such a tool fails with [CodeMissingClientCapability].
func (t *Tool) OnlyAsTask() bool {
	if t.Execution != nil && t.Execution.TaskSupport == TaskSupportRequired {
		return true
	}
	return jsonx.IsString(t.Meta[MetaTaskSupport], TaskSupportRequired)
}

// TaskSupportRequired is the TaskSupport of a tool that runs only as a task.
const TaskSupportRequired = "required"

// MetaTaskSupport is the key in the _meta of a tool with its TaskSupport, in lists of modern
// versions. Servers that use this module set it.
const MetaTaskSupport = "io.github.mcpkit/task"

// A ToolExecution says how a tool may be run. 2025-11-25 only.
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

// CallToolParams are the params of tools/call.
type CallToolParams struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // an object; nil when absent
	Task      json.RawMessage `json:"task,omitzero"`      // 2025-11-25 only
	Inputs
	Meta Meta `json:"_meta,omitzero"`
}

// A CallToolResult is the result of tools/call.
type CallToolResult struct {
	Content []Content
	// StructuredContent is JSON; nil when absent, and `null` if the output is null. Since
	// 2025-06-18. Up to 2025-11-25 it must be an object; later it may be any value.
	StructuredContent json.RawMessage
	IsError           bool // the tool failed, and Content says how
	ResultType        string
	Meta              Meta

	// Extra holds the members that are in no protocol version. They are written as they were
	// received.
	Extra map[string]json.RawMessage

	// saidFalse is true if the result was read with "isError": false, which means the same as no
	// isError. It is written back, so that a proxy does not change the result.
	saidFalse bool

	valid json.RawMessage // of SetValid
}

// SetValid sets StructuredContent to JSON that is known to be valid and compact, so that it is not
// checked when the result is written.
func (r *CallToolResult) SetValid(structured json.RawMessage) {
	r.StructuredContent, r.valid = structured, structured
}

// isValid reports whether StructuredContent is what SetValid has set.
func (r *CallToolResult) isValid() bool {
	n := len(r.StructuredContent)
	return n > 0 && n == len(r.valid) && &r.StructuredContent[0] == &r.valid[0]
}

// AppendMembers appends the members of the result, separated by commas and without the braces
// around them, so that the caller can add members. It writes at least content.
func (r *CallToolResult) AppendMembers(dst []byte) ([]byte, error) {
	dst = append(dst, `"content":`...)
	dst, err := appendContents(dst, r.Content)
	if err != nil {
		return dst, err
	}
	switch {
	case r.isValid():
		dst = append(append(dst, `,"structuredContent":`...), r.StructuredContent...)
	case r.StructuredContent != nil:
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
	dst = appendText(dst, "resultType", r.ResultType)
	if r.Extra != nil {
		var err error
		if dst, err = r.AppendExtra(dst); err != nil {
			return dst, err
		}
	}
	return appendMeta(dst, r.Meta)
}

// AppendExtra appends the members of Extra, sorted by name, with a comma before each. It leaves out
// names that the protocol defines.
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
