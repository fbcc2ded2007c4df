package protocol

import "github.com/mcpkit/mcpkit-go/internal/jsonx"

// A ListRootsResult lists the roots of a client. Roots are deprecated since 2026-07-28.
type ListRootsResult struct {
	Roots []Root `json:"roots"`
	Meta  Meta   `json:"_meta,omitzero"`
}

// MarshalJSON writes the result; nil roots are written as [].
func (r ListRootsResult) MarshalJSON() ([]byte, error) {
	type plain ListRootsResult
	return jsonx.Marshal(plain(r))
}

// A Root is a folder or file that a server may work in.
type Root struct {
	URI  string `json:"uri"` // a file:// URI
	Name string `json:"name,omitzero"`
	Meta Meta   `json:"_meta,omitzero"` // 2025-06-18 and later
}
