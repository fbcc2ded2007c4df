package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// NewRequest returns a request whose params are the JSON of params; nil means no params. A
// json.RawMessage is used as it is and must not be changed afterwards. NewRequest returns an error
// if params cannot be encoded or are not an object. The ID may be absent if a transport chooses it
// ([transport.Peer.Call]).
//
// [transport.Peer.Call]: https://pkg.go.dev/github.com/mcpkit/mcpkit-go/transport#Peer
func NewRequest(id ID, method string, params any) (*Request, error) {
	r := &Request{ID: id, Method: method}
	switch p := params.(type) {
	case nil:
		return r, nil
	case json.RawMessage:
		if err := r.setRaw(p); err != nil {
			return nil, err
		}
		return r, nil
	}
	raw, err := jsonx.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("jsonrpc: params of %q: %w", method, err)
	}
	switch {
	case string(raw) == "null":
		return r, nil
	case raw[0] != '{':
		return nil, fmt.Errorf("jsonrpc: params of %q must be a JSON object; %T encodes as something else", method, params)
	}
	r.Params = raw
	return r, nil
}

// setRaw sets params after making the same checks as Decode.
func (r *Request) setRaw(params json.RawMessage) error {
	s := scanner{data: params}
	i := jsonx.SkipSpace(s.data, 0)
	if i >= len(params) {
		return nil
	}
	start := i
	var found members
	if params[i] == '{' {
		i = s.object(i, 2, &found, nil)
	} else {
		i = s.value(i, 1)
	}
	end := i
	if i >= 0 {
		i = s.end(i)
	}
	switch {
	case i < 0:
		return fmt.Errorf("jsonrpc: params of %q: invalid JSON at byte %d: %s", r.Method, s.at, s.fault)
	case params[start] == 'n':
		return nil
	case params[start] != '{':
		return fmt.Errorf("jsonrpc: params of %q must be a JSON object", r.Method)
	}
	obj := params[start:end:end]
	if name, ok := found.duplicate(obj); ok {
		return fmt.Errorf("jsonrpc: params of %q: member %s is there twice", r.Method, quote(name))
	}
	r.Params, r.params = obj, found
	r.params.first = &obj[0]
	return nil
}

// NewNotification returns a notification; params are as for [NewRequest].
func NewNotification(method string, params any) (*Request, error) {
	return NewRequest(ID{}, method, params)
}

// NewBroadcast is like [NewNotification], for a notification that many peers get. It is encoded
// once, so it must not be changed afterwards.
func NewBroadcast(method string, params any) (*Request, error) {
	r, err := NewNotification(method, params)
	if err != nil {
		return nil, err
	}
	r.shared = &broadcast{r, AppendRequest(nil, r)}
	return r, nil
}

// Encoded returns r as JSON, which must not be changed: others may have it, too.
func (r *Request) Encoded() []byte {
	if r.shared != nil && r.shared.of == r {
		return r.shared.text
	}
	return AppendRequest(nil, r)
}

// AppendRequest appends r as JSON to dst. A request without ID becomes a notification.
func AppendRequest(dst []byte, r *Request) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	if r.ID.IsValid() {
		dst = append(dst, `"id":`...)
		dst = append(dst, r.ID.raw...)
		dst = append(dst, ',')
	}
	dst = append(dst, `"method":`...)
	dst = jsonx.AppendString(dst, r.Method)
	if len(r.Params) > 0 {
		dst = append(dst, `,"params":`...)
		dst = append(dst, r.Params...)
	}
	return append(dst, '}')
}

// AppendResponse appends r, whose Stream must be nil, as JSON to dst. An absent ID becomes null,
// and a response with neither result nor error gets the result {}.
//
// Result and Error.Data are copied unchanged, so they must be valid JSON. They may contain line
// breaks; transports that separate messages by lines must replace these.
func AppendResponse(dst []byte, r *Response) []byte {
	dst = AppendHead(slices.Grow(dst, len(r.ID.raw)+len(r.Result)+len(`{"jsonrpc":"2.0","id":null,"result":{}}`)), r)
	switch {
	case r.Error != nil:
		dst = appendError(dst, r.Error)
	case len(r.Result) > 0:
		dst = append(dst, r.Result...)
	default:
		dst = append(dst, "{}"...)
	}
	return append(dst, '}')
}

// AppendHead appends the part of r before its result or error. After that comes only a '}', so a large
// result need not be copied.
func AppendHead(dst []byte, r *Response) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = r.ID.append(dst)
	if r.Error != nil {
		return append(dst, `,"error":`...)
	}
	return append(dst, `,"result":`...)
}

func appendError(dst []byte, e *Error) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsonx.AppendString(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}

// WriteResponse writes r to w: in one Write, or, if r has a Stream and no Error, in the Writes that
// Stream makes. It writes nothing after the message, not even a line break. It returns the errors
// of w and of Stream.
func WriteResponse(w io.Writer, r *Response) error {
	if r.Stream != nil && r.Error == nil {
		if _, err := w.Write(AppendHead(nil, r)); err != nil {
			return err
		}
		if err := r.Stream(w); err != nil {
			return err
		}
		_, err := w.Write([]byte{'}'})
		return err
	}
	_, err := w.Write(AppendResponse(nil, r))
	return err
}

// MarshalJSON returns r as JSON.
func (r *Request) MarshalJSON() ([]byte, error) { return AppendRequest(nil, r), nil }

// UnmarshalJSON reads a request or a notification as [Decode] does. The error is an [*Error].
func (r *Request) UnmarshalJSON(data []byte) error {
	m, bad := Decode(append([]byte(nil), data...))
	switch {
	case bad != nil:
		return bad.Error
	case m.Request == nil:
		return Errorf(CodeInvalidRequest, "got a response, want a request")
	}
	*r = *m.Request
	return nil
}

// MarshalJSON returns r, whose Stream must be nil, as JSON.
func (r *Response) MarshalJSON() ([]byte, error) {
	if r.Stream != nil && r.Error == nil {
		return nil, errors.New("jsonrpc: a response with a Stream cannot be marshaled; use WriteResponse")
	}
	return AppendResponse(nil, r), nil
}

// UnmarshalJSON reads a response as [Decode] does. The error is an [*Error].
func (r *Response) UnmarshalJSON(data []byte) error {
	m, bad := Decode(append([]byte(nil), data...))
	switch {
	case bad != nil:
		return bad.Error
	case m.Response == nil:
		return Errorf(CodeInvalidRequest, "got a request, want a response")
	}
	*r = *m.Response
	return nil
}

// MarshalJSON returns e as JSON.
func (e *Error) MarshalJSON() ([]byte, error) { return appendError(nil, e), nil }

// UnmarshalJSON reads the error member of a response. The error is an [*Error].
func (e *Error) UnmarshalJSON(data []byte) error {
	if !jsonx.Valid(data) {
		return Errorf(CodeParseError, "invalid JSON")
	}
	read, fault := decodeError(append([]byte(nil), data...))
	if fault != "" {
		return Errorf(CodeInvalidRequest, "%s", fault)
	}
	*e = *read
	return nil
}
