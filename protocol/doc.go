// Package protocol holds the wire types of the Model Context Protocol, all five revisions in one
// set: a file for each chapter of the specification.
//
// It is pure data. It knows what messages look like, not when they may be sent; a field that only
// some revisions have says so, and whoever encodes for an older peer leaves it unset.
//
// All types work with encoding/json. Arrays that the schema requires are written as [] when they
// are nil, required strings are always written, and optional members are left out when they have
// their zero value. Where a zero must be told from an absent value, the field is a pointer. Raw
// JSON (schemas, arguments, structured content) and the unknown members of _meta, experimental and
// extensions are kept as they came.
//
// Values are not safe for concurrent change; concurrent reading is fine.
package protocol
