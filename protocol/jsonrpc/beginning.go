package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Beginning is what could be read of a message that cannot be decoded, because it is malformed or
// too large.
type Beginning struct {
	ID       ID   // absent if it cannot be read or occurs twice
	Request  bool // it has a method, so it is a request or a notification
	Response bool // it has a result or an error and no method so far, so it is taken for a response
}

// ReadBeginning reads data until it ends or stops being valid JSON. It accepts things that [Decode]
// refuses, such as names that differ only by case, so that the error can be sent to the right peer.
func ReadBeginning(data []byte) (b Beginning) {
	defer func() { b.Response = b.Response && !b.Request }()
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return b
	}
	var ids []ID
	for {
		name, err := d.Token()
		if err != nil {
			return b
		}
		if len(ids) == 1 {
			b.ID = ids[0] // more text follows, so the ID is complete
		} else {
			b.ID = ID{}
		}
		text, _ := name.(string)
		switch strings.ToLower(text) {
		case "method":
			b.Request = true
		case "result", "error":
			b.Response = true
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return b
		}
		if text == "id" {
			id, _ := ParseID(value)
			ids = append(ids, id)
		}
	}
}
