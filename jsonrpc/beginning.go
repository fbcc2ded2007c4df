package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Beginning is what can be told of a message that cannot be decoded: it is malformed, or was too
// large to be read whole.
type Beginning struct {
	ID       ID   // absent where it cannot be read, or is there twice
	Request  bool // it has a method, so it is a request or a notification
	Response bool // it has a result or an error and no method so far, so it is a response
}

// ReadBeginning reads data up to where it ends or is not JSON any more. It allows what [Decode]
// refuses, such as names that differ by case, so that it is clear who has to be told of the fault.
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
			b.ID = ids[0] // something comes behind it, so it is whole
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
