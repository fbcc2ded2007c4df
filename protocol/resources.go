package protocol

import (
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Resource describes something that a client can read.
type Resource struct {
	URI         string       `json:"uri"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitzero"` // 2025-06-18 and later
	Description string       `json:"description,omitzero"`
	MIMEType    string       `json:"mimeType,omitzero"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Size        *int64       `json:"size,omitzero"`  // bytes, before any encoding; nil when unknown
	Icons       []Icon       `json:"icons,omitzero"` // 2025-11-25 and later
	Meta        Meta         `json:"_meta,omitzero"` // 2025-06-18 and later
}

// A ResourceTemplate describes a family of resources by a URI template (RFC 6570).
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitzero"` // 2025-06-18 and later
	Description string       `json:"description,omitzero"`
	MIMEType    string       `json:"mimeType,omitzero"` // of all resources of the family
	Annotations *Annotations `json:"annotations,omitzero"`
	Icons       []Icon       `json:"icons,omitzero"` // 2025-11-25 and later
	Meta        Meta         `json:"_meta,omitzero"` // 2025-06-18 and later
}

// ResourceContents are the contents of a resource: Text if it is text, Blob (not nil) if it is
// binary.
type ResourceContents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitzero"`
	Text     *string `json:"text,omitzero"`
	Blob     []byte  `json:"blob,omitzero"` // base64 on the wire
	Meta     Meta    `json:"_meta,omitzero"`
}

// AppendJSON appends the contents as a JSON object. If neither Text nor Blob is set, it writes an
// empty text.
func (r *ResourceContents) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"uri":`...)
	dst = jsonx.AppendString(dst, r.URI)
	dst = appendText(dst, "mimeType", r.MIMEType)
	switch {
	case r.Text != nil:
		dst = append(dst, `,"text":`...)
		dst = jsonx.AppendString(dst, *r.Text)
	case r.Blob != nil:
		dst = append(dst, `,"blob":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, r.Blob), '"')
	default:
		dst = append(dst, `,"text":""`...)
	}
	dst, err := appendMeta(dst, r.Meta)
	return append(dst, '}'), err
}

// MarshalJSON writes the contents.
func (r ResourceContents) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// ListResourcesResult is a page of resources.
type ListResourcesResult struct {
	Resources  []Resource `json:"resources"`
	NextCursor *string    `json:"nextCursor,omitzero"` // nil on the last page
	Cache
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// MarshalJSON writes the page; nil resources are written as [].
func (r ListResourcesResult) MarshalJSON() ([]byte, error) {
	type plain ListResourcesResult
	return jsonx.Marshal(plain(r))
}

// ListResourceTemplatesResult is a page of resource templates.
type ListResourceTemplatesResult struct {
	ResourceTemplates []ResourceTemplate `json:"resourceTemplates"`
	NextCursor        *string            `json:"nextCursor,omitzero"` // nil on the last page
	Cache
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// MarshalJSON writes the page; nil templates are written as [].
func (r ListResourceTemplatesResult) MarshalJSON() ([]byte, error) {
	type plain ListResourceTemplatesResult
	return jsonx.Marshal(plain(r))
}

// ReadResourceParams are the params of resources/read.
type ReadResourceParams struct {
	URI string `json:"uri"`
	Inputs
	Meta Meta `json:"_meta,omitzero"`
}

// A ReadResourceResult holds the contents of a resource, or of several if the resource is a
// collection.
type ReadResourceResult struct {
	Contents []ResourceContents `json:"contents"`
	Cache
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// AppendJSON appends the result as a JSON object; nil contents are written as [].
func (r *ReadResourceResult) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"contents":[`...)
	for i := range r.Contents {
		var err error
		if dst, err = r.Contents[i].AppendJSON(jsonx.AppendComma(dst)); err != nil {
			return dst, fmt.Errorf("contents %d: %w", i, err)
		}
	}
	dst = append(dst, ']')
	if r.TTLMs != nil {
		dst = strconv.AppendInt(append(dst, `,"ttlMs":`...), *r.TTLMs, 10)
	}
	dst = appendText(dst, "cacheScope", r.CacheScope)
	return finish(appendText(dst, "resultType", r.ResultType), nil, r.Meta)
}

// MarshalJSON writes the result.
func (r ReadResourceResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// SubscribeParams are the params of resources/subscribe and resources/unsubscribe. Legacy.
type SubscribeParams struct {
	URI  string `json:"uri"`
	Meta Meta   `json:"_meta,omitzero"`
}

// ResourceUpdatedParams are the params of notifications/resources/updated: the resource, or one
// below it, has changed.
type ResourceUpdatedParams struct {
	URI  string `json:"uri"`
	Meta Meta   `json:"_meta,omitzero"`
}
