package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// MaxBatch is the most messages a batch may hold.
const MaxBatch = 100

// statusBadRequest is the status of an HTTP response to something that is not a message.
const statusBadRequest = 400

// Decode reads one message, which must be all of data. The message refers to data, so the caller
// must not write to data afterwards.
//
// Decode checks all of the JSON: grammar, UTF-8, no unpaired surrogates, at most [MaxDepth] levels,
// no duplicate members in the message or in its params. (Code that decodes the values inside params
// has to find duplicates there.) Notifications get no response, so one whose params are not an
// object is read as one without params. Decode ignores unknown members of the message, but refuses
// those that differ from a known one only by case.
//
// The second result is not nil if data is not a valid message. It is the error to respond with
// ([CodeParseError] or [CodeInvalidRequest]) and has the ID of the request if that could be read.
// For a malformed response it has no ID, since that ID is one of the receiver's and the sender
// could mistake it for one of its own. Instead, the Message holds a Response with that ID and an
// error, so that the caller waiting for it gets the error.
func Decode(data []byte) (Message, *Response) {
	if uint64(len(data)) > math.MaxUint32 {
		return Message{}, invalid(ID{}, "message is larger than 4 GiB")
	}
	s := scanner{data: data}
	var env envelope
	i := jsonx.SkipSpace(s.data, 0)
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

// response returns the error response for the fault that s found.
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

// An envelope is the message object, split into members. The fields are raw values, nil when
// absent.
type envelope struct {
	obj    []byte
	all    members // of obj
	params members // of the params, if they are an object

	version, id, method, param, result, err []byte
}

var known = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// sort puts each member into its field. It returns a fault if a name is wrong.
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
			e.id = nil // it is unclear which of the two is meant
		}
		return "member " + quote(name) + " is there twice"
	}
	return fault
}

// quote quotes text sent by a peer, shortened for an error message.
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
		fault = "id must be a string or a 64-bit integer"
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

// request returns the request of a valid envelope. ID and method share one string.
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

// response returns the response of an envelope that has a result or an error.
func (e *envelope) response() (Message, *Response) {
	id, _ := ParseID(e.id)
	null := len(e.id) > 0 && e.id[0] == 'n'
	switch {
	case e.result != nil && e.err != nil:
		return malformed(id, "it has a result and an error")
	case e.id != nil && !null && !id.IsValid():
		return malformed(id, "id must be a string or a 64-bit integer")
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

// malformed returns the error response to a malformed response.
func malformed(id ID, fault string) (Message, *Response) {
	var m Message
	if id.IsValid() {
		m.Response = &Response{ID: id, Error: Errorf(CodeInvalidRequest, "malformed response: %s", fault)}
	}
	return m, invalid(ID{}, "%s", fault)
}

// decodeError reads the error member of a response. Errors are rare, so scanning it a second time
// is acceptable.
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

// Batch splits a JSON array into its elements, each to be passed to [Decode]. If data does not
// begin an array, isBatch is false and the other results are nil. If the array is malformed, empty,
// or longer than [MaxBatch], bad is the one error to respond with.
func Batch(data []byte) (elements []json.RawMessage, isBatch bool, bad *Response) {
	s := scanner{data: data}
	i := jsonx.SkipSpace(s.data, 0)
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
