package jsonrpc

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// maxBatch is the most messages a batch may hold.
const maxBatch = 100

// maxDepth is how many levels of objects and arrays a message may have, counting the message
// itself. The limit bounds the stack of code that walks the message recursively.
const maxDepth = 128

// statusBadRequest is the status of an HTTP response to something that is not a message.
const statusBadRequest = 400

// Decode reads one message, which must be all of data. The message refers to data, so the caller
// must not write to data afterwards.
//
// Decode checks all of the JSON: grammar, UTF-8, no unpaired surrogates, no duplicate members, at
// most 128 levels. Notifications get no response, so one whose params are not an object is
// read as one without params. Decode ignores unknown members of the message, but refuses those that
// differ from a known one only by case.
//
// The second result is not nil if data is not a valid message. It is the error to respond with
// ([CodeParseError] or [CodeInvalidRequest]); the latter has the ID of the request if that could be
// read. For a malformed response it has no ID, since that ID is one of the receiver's and the sender
// could mistake it for one of its own. Instead, the Message holds a Response with that ID and an
// error, so that the caller waiting for it gets the error.
func Decode(data []byte) (Message, *Response) {
	if err := jsonx.Check(data); err != nil {
		return Message{}, unreadable(err)
	}
	if jsonx.Kind(jsonx.TrimSpace(data)) != '{' {
		return Message{}, invalid(ID{}, "a message is a JSON object")
	}
	var env envelope
	for name, value := range jsonx.Members(data) {
		env.add(name, value)
	}
	if jsonx.IsDeeper(data, maxDepth) {
		env.fault = tooDeep
	}
	return env.message()
}

var tooDeep = "nested deeper than " + strconv.Itoa(maxDepth) + " levels"

// unreadable returns the response to something that the JSON library refuses.
func unreadable(err error) *Response {
	const most = 200 // of a text that quotes names of the peer
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	for _, private := range []string{"/params/arguments", "/params/inputResponses", "/result"} { // may have secrets
		if strings.HasPrefix(jsonx.ErrorPointer(err), private) {
			text = "a fault or a repeated name within " + private
		}
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return &Response{Error: Errorf(CodeParseError, "invalid JSON: %s", text), HTTPStatus: statusBadRequest}
}

func invalid(id ID, fault string) *Response {
	return &Response{
		ID:         id,
		Error:      Errorf(CodeInvalidRequest, "invalid message: %s", fault),
		HTTPStatus: statusBadRequest,
	}
}

// An envelope is the message object, split into members. The fields are raw values, nil when
// absent.
type envelope struct {
	version, id, method, params, result, err []byte

	fault string // the first thing that is wrong; "" if nothing is
}

var known = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

func (e *envelope) add(name, value []byte) {
	fields := [...]*[]byte{&e.version, &e.id, &e.method, &e.params, &e.result, &e.err}
	for i, k := range known {
		if jsonx.IsString(name, k) {
			*fields[i] = value
			return
		}
	}
	for _, k := range known {
		if text := jsonx.String(name); strings.EqualFold(text, k) {
			e.fault = "member " + strconv.Quote(text) + " differs from " + strconv.Quote(k) + " only by case"
		}
	}
}

func (e *envelope) message() (Message, *Response) {
	if e.fault == "" && !jsonx.IsString(e.version, "2.0") {
		e.fault = `jsonrpc must be "2.0"`
	}
	if e.method == nil && (e.result != nil || e.err != nil) {
		return e.response()
	}
	id, isID := ParseID(e.id)
	method := jsonx.String(e.method)
	params := jsonx.Kind(e.params)
	fault := e.fault
	switch {
	case fault != "":
	case e.result != nil || e.err != nil:
		fault = "it has a method and a result or an error"
	case e.method == nil:
		fault = "it has no method"
	case method == "":
		fault = "method must be a string that is not empty"
	case e.id != nil && !isID:
		fault = "id must be a string or a 64-bit integer"
	case e.id != nil && e.params != nil && params != '{' && params != 'n':
		fault = "params must be an object"
	}
	if fault != "" {
		return Message{}, invalid(id, fault)
	}
	r := &Request{ID: id, Method: method}
	if params == '{' {
		r.Params = e.params
	}
	return Message{Request: r}, nil
}

// response returns the response of an envelope that has a result or an error.
func (e *envelope) response() (Message, *Response) {
	id, isID := ParseID(e.id)
	r := &Response{ID: id, Result: e.result}
	fault := e.fault
	switch {
	case fault != "":
	case e.result != nil && e.err != nil:
		fault = "it has a result and an error"
	case !isID && e.id != nil && jsonx.Kind(e.id) != 'n':
		fault = "id must be a string or a 64-bit integer"
	case !isID && e.result != nil:
		fault = "a result must have the id of its request"
	case e.err != nil:
		r.Error, fault = decodeError(e.err)
	}
	if fault == "" {
		return Message{Response: r}, nil
	}
	var m Message
	if isID {
		m.Response = &Response{ID: id, Error: Errorf(CodeInvalidRequest, "malformed response: %s", fault)}
	}
	return m, invalid(ID{}, fault)
}

// decodeError reads the error member of a response.
func decodeError(raw []byte) (e *Error, fault string) {
	code, err := strconv.Atoi(string(jsonx.Member(raw, "code")))
	message := jsonx.Member(raw, "message")
	if err != nil || jsonx.Kind(message) != '"' {
		return nil, "error must be an object with an integer code and a string message"
	}
	return &Error{Code: code, Message: jsonx.String(message), Data: jsonx.Member(raw, "data")}, ""
}

// Batch splits a JSON array into its elements, each to be passed to [Decode]. If data does not
// begin an array, isBatch is false and the other results are nil. If the array is malformed, empty,
// or longer than 100 messages, bad is the one error to respond with.
func Batch(data []byte) (elements []json.RawMessage, isBatch bool, bad *Response) {
	if jsonx.Kind(jsonx.TrimSpace(data)) != '[' {
		return nil, false, nil
	}
	if !jsonx.Valid(data) {
		return nil, true, unreadable(errors.New("malformed array"))
	}
	if jsonx.IsDeeper(data, maxDepth) {
		return nil, true, invalid(ID{}, tooDeep)
	}
	for element := range jsonx.Elements(data) {
		if len(elements) == maxBatch {
			return nil, true, invalid(ID{}, "a batch may have "+strconv.Itoa(maxBatch)+" messages at most")
		}
		elements = append(elements, element)
	}
	if elements == nil {
		return nil, true, invalid(ID{}, "a batch must not be empty")
	}
	return elements, true, nil
}
