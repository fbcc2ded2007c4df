package jsonrpc

// NewRequest returns a request whose params are the JSON of params; nil means none.
func NewRequest(id ID, method string, params any) (*Request, error) { panic("not yet") }

// AppendRequest appends r as JSON to dst.
func AppendRequest(dst []byte, r *Request) []byte { panic("not yet") }

// AppendResponse appends r, whose Stream must be nil, as JSON to dst.
func AppendResponse(dst []byte, r *Response) []byte { panic("not yet") }
