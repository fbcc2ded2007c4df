package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// MaxBatch is how many messages a batch may hold.
//
//limit:message messages of a batch (2025-03-26) | -32600: `a batch of `
const MaxBatch = 100

// statusBadRequest is what a binding over HTTP answers to something that is no message.
const statusBadRequest = 400

// Decode reads one message, which must be all of data. The message refers to data, so data must not
// be written to afterwards.
//
// The JSON is checked whole: grammar, UTF-8, no half surrogate pairs, at most [MaxDepth] levels, no
// member twice in the message or in its params. (Duplicates further down are found by whoever
// decodes the values there.) Notifications are never answered, so one whose params are not an
// object is read as one without params. Unknown members of the envelope are ignored, but not those
// that differ from a known one only by case.
//
// The second result is not nil when data is no proper message; it is the error to answer with
// ([CodeParseError] or [CodeInvalidRequest]) and has the ID of the request where that could be
// read. For a malformed response it has none, since the ID is one of ours and would be mistaken for
// one of the sender's; instead the Message holds a Response with that ID and an error, so that who
// waits for it learns of it.
func Decode(data []byte) (Message, *Response) {
	if uint64(len(data)) > math.MaxUint32 {
		return Message{}, invalid(ID{}, "message is larger than 4 GiB")
	}
	s := scanner{data: data}
	var env envelope
	i := s.space(0)
	if i < len(data) && data[i] == '{' {
		env.obj = data[i:]
		i = s.object(i, 1, &env.all, &env.params)
	} else {
		i = s.value(i, 0)
	}
	if i >= 0 {
		i = s.end(i)
	}
	if i < 0 {
		id, _ := ParseID(env.all.find(env.obj, "id"))
		return Message{}, s.response(id)
	}
	if env.obj == nil {
		return Message{}, invalid(ID{}, "a message is a JSON object")
	}
	return env.message()
}

// response is the answer to what s found at fault.
func (s *scanner) response(id ID) *Response {
	if s.deep {
		return invalid(id, "nested deeper than %d levels at byte %d", MaxDepth, s.at)
	}
	return &Response{
		Error:      Errorf(CodeParseError, "invalid JSON at byte %d: %s", s.at, s.fault),
		HTTPStatus: statusBadRequest,
	}
}

func invalid(id ID, format string, args ...any) *Response {
	return &Response{
		ID:         id,
		Error:      Errorf(CodeInvalidRequest, "invalid message: "+format, args...),
		HTTPStatus: statusBadRequest,
	}
}

// An envelope is the object of a message, taken apart. The fields are raw values, nil when absent.
type envelope struct {
	obj    []byte
	all    members // of obj
	params members // of the params, where they are an object

	version, id, method, param, result, err []byte
}

var known = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// sort gives each member its field, and returns what is wrong with the names.
func (e *envelope) sort() (fault string) {
	fields := [...]*[]byte{&e.version, &e.id, &e.method, &e.param, &e.result, &e.err}
members:
	for i := range e.all.len() {
		s := e.all.at(i)
		for k, name := range known {
			if e.all.says(e.obj, s, name) {
				*fields[k] = e.obj[s.start:s.end:s.end]
				continue members
			}
		}
		name := e.all.name(e.obj, s)
		for _, want := range known {
			if bytes.EqualFold(name, []byte(want)) {
				fault = "member " + quote(name) + " differs from " + strconv.Quote(want) + " only by case"
			}
		}
	}
	if name, ok := e.all.duplicate(e.obj); ok {
		if string(name) == "id" {
			e.id = nil // neither of the two is the one to answer to
		}
		return "member " + quote(name) + " is there twice"
	}
	return fault
}

// quote quotes what a peer sent, as much of it as an error message should repeat.
func quote(text []byte) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(string(bytes.ToValidUTF8(text[:most], nil)) + "...")
	}
	return strconv.Quote(string(text))
}

func (e *envelope) message() (Message, *Response) {
	fault := e.sort()
	answer := e.method == nil && (e.result != nil || e.err != nil)
	switch {
	case fault != "":
	case !says(e.version, "2.0"):
		fault = `jsonrpc must be "2.0"`
	case answer:
		return e.response()
	case e.result != nil || e.err != nil:
		fault = "it has a method and a result or an error"
	case e.method == nil:
		fault = "it has no method"
	case e.method[0] != '"' || len(e.method) == 2:
		fault = "method must be a string that is not empty"
	case e.id != nil && !isID(e.id):
		fault = "id must be a string or an integer of 64 bits"
	case e.id != nil && e.param != nil && e.param[0] != '{' && e.param[0] != 'n':
		fault = "params must be an object"
	default:
		if e.param == nil || e.param[0] != '{' {
			return Message{Request: e.request()}, nil
		}
		name, twice := e.params.duplicate(e.param)
		if !twice {
			return Message{Request: e.request()}, nil
		}
		fault = "member " + quote(name) + " of params is there twice"
	}
	id, _ := ParseID(e.id)
	if answer {
		return malformed(id, fault)
	}
	return Message{}, invalid(id, "%s", fault)
}

// request makes the request of an envelope that is proper. ID and method share one string.
func (e *envelope) request() *Request {
	r := new(Request)
	var room [64]byte
	id, text := e.id, room[:0]
	if e.id != nil {
		text = appendID(text, id)
	}
	n := len(text)
	if bytes.IndexByte(e.method, '\\') < 0 {
		text = append(text, e.method[1:len(e.method)-1]...)
	} else {
		text = append(text, jsonx.String(e.method)...)
	}
	both := string(text)
	r.ID, r.Method = ID{both[:n]}, both[n:]
	if e.param != nil && e.param[0] == '{' {
		r.Params, r.params = e.param, e.params
		r.params.first = &e.param[0]
	}
	return r
}

// response makes the response of an envelope that has a result or an error.
func (e *envelope) response() (Message, *Response) {
	id, _ := ParseID(e.id)
	null := len(e.id) > 0 && e.id[0] == 'n'
	switch {
	case e.result != nil && e.err != nil:
		return malformed(id, "it has a result and an error")
	case e.id != nil && !null && !id.IsValid():
		return malformed(id, "id must be a string or an integer of 64 bits")
	case e.result != nil && !id.IsValid():
		return malformed(id, "a result must have the id of its request")
	case e.result != nil:
		return Message{Response: &Response{ID: id, Result: e.result}}, nil
	}
	wire, fault := decodeError(e.err)
	if fault != "" {
		return malformed(id, fault)
	}
	return Message{Response: &Response{ID: id, Error: wire}}, nil
}

// malformed is the answer to a response that is none.
func malformed(id ID, fault string) (Message, *Response) {
	var m Message
	if id.IsValid() {
		m.Response = &Response{ID: id, Error: Errorf(CodeInvalidRequest, "malformed response: %s", fault)}
	}
	return m, invalid(ID{}, "%s", fault)
}

// decodeError reads the error member of a response. Since it is rare, it may be walked a second
// time.
func decodeError(raw []byte) (e *Error, fault string) {
	if raw[0] != '{' {
		return nil, "error must be an object"
	}
	var found members
	s := scanner{data: raw}
	s.object(0, 1, &found, nil)
	if name, ok := found.duplicate(raw); ok {
		return nil, "member " + quote(name) + " of error is there twice"
	}
	code, err := strconv.ParseInt(string(found.find(raw, "code")), 10, 0)
	if err != nil {
		return nil, "code of error must be an integer"
	}
	message := found.find(raw, "message")
	if len(message) == 0 || message[0] != '"' {
		return nil, "message of error must be a string"
	}
	return &Error{Code: int(code), Message: jsonx.String(message), Data: found.find(raw, "data")}, ""
}

// Batch splits a JSON array into its elements, each for [Decode]. With isBatch false, data does not
// begin an array and the rest is nil. bad is not nil when the array is malformed, empty, or longer
// than [MaxBatch]: the one error to answer with.
func Batch(data []byte) (elements []json.RawMessage, isBatch bool, bad *Response) {
	s := scanner{data: data}
	i := s.space(0)
	if i >= len(data) || data[i] != '[' {
		return nil, false, nil
	}
	n := 0
	i = s.array(i, 1, func(start, end int) {
		if n++; n <= MaxBatch {
			elements = append(elements, data[start:end:end])
		}
	})
	if i >= 0 {
		i = s.end(i)
	}
	switch {
	case i < 0:
		return nil, true, s.response(ID{})
	case n == 0:
		return nil, true, invalid(ID{}, "a batch must not be empty")
	case n > MaxBatch:
		return nil, true, invalid(ID{}, "a batch of %d messages; at most %d are accepted", n, MaxBatch)
	}
	return elements, true, nil
}
