// Package protocol holds the wire types of the Model Context Protocol. One set of types covers all
// five protocol versions, with a file for each chapter of the specification.
//
// The package only describes what messages look like, not when they may be sent. The comment of a
// field says if only some versions have it; code that encodes for a peer of another version leaves
// the field unset.
//
// All types work with encoding/json. Arrays that the schema requires are written as [] when they
// are nil, required strings are always written, and optional members are left out when they have
// their zero value. A field is a pointer if zero and absent mean different things. Raw JSON
// (schemas, arguments, structured content) and the unknown members of _meta, experimental and
// extensions are written as they were received.
//
// Values may be read concurrently, but not changed concurrently.
package protocol
