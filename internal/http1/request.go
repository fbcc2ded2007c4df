package http1

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// direct reports whether req is one that the transport sends itself. Whatever would need care is not.
func (t *Transport) direct(req *http.Request) bool {
	if !canPeek || req.Method != http.MethodPost || req.URL == nil || req.URL.Scheme != "http" || req.URL.User != nil || req.Body == nil ||
		req.ContentLength <= 0 || req.ContentLength > maxBody || len(req.TransferEncoding) > 0 || req.Close || req.Trailer != nil {
		return false
	}
	if b := t.base; b.DisableKeepAlives || b.MaxConnsPerHost != 0 || b.ResponseHeaderTimeout != 0 || b.MaxResponseHeaderBytes != 0 ||
		b.Protocols != nil {
		return false
	}
	//lint:ignore SA1019 deprecated, but somebody may dial by it
	if t.base.DialContext == nil && t.base.Dial != nil {
		return false
	}
	return plainHost(req.URL.Host) && (req.Host == "" || plainHost(req.Host)) && plainFields(req.Header) &&
		httptrace.ContextClientTrace(req.Context()) == nil && !t.proxied(req)
}

func (t *Transport) proxied(req *http.Request) bool {
	if t.base.Proxy == nil {
		return false
	}
	u, err := t.base.Proxy(req)
	return err != nil || u != nil
}

// plainHost reports whether host goes into a request as it is.
func plainHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._:[]", c) >= 0) {
			return false
		}
	}
	return host != ""
}

// plainFields reports whether the fields go into a request as they are, and none of them is about the connection.
func plainFields(header http.Header) bool {
	for name, values := range header {
		switch name {
		case "Connection", "Upgrade", "Expect", "Te", "Trailer", "Transfer-Encoding", "Content-Length", "Host", "Accept-Encoding", "Range",
			"Keep-Alive", "Proxy-Connection", "":
			return false
		}
		for i := range len(name) {
			if c := name[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return false
			}
		}
		if slices.ContainsFunc(values, notPlain) {
			return false
		}
	}
	return true
}

// notPlain reports whether the value of a field is anything but printable ASCII without blanks around it.
func notPlain(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' {
			return true
		}
	}
	return value != "" && (value[0] == ' ' || value[len(value)-1] == ' ')
}

// address is what to dial for u.
func address(u *url.URL) string {
	if port := u.Port(); port != "" && !strings.HasPrefix(u.Host, "[") {
		return u.Host
	} else if port != "" {
		return net.JoinHostPort(u.Hostname(), port)
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// userAgent is what net/http says that it is.
const userAgent = "Go-http-client/1.1"

// appendRequest appends req as it is sent, and closes its body.
func appendRequest(b []byte, req *http.Request) ([]byte, error) {
	defer req.Body.Close()
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	path := req.URL.RequestURI()
	for i := range len(path) {
		if path[i] <= ' ' || path[i] == 0x7f {
			return b, errors.New("http1: the path of the URL holds a blank or a control character")
		}
	}
	b = append(append(append(b, "POST "...), path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, host...), "\r\n"...)
	if _, ok := req.Header["User-Agent"]; !ok {
		b = append(b, "User-Agent: "+userAgent+"\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, req.ContentLength, 10)
	b = append(b, "\r\n"...)
	for name, values := range req.Header {
		for _, value := range values {
			if value == "" && name == "User-Agent" {
				continue // as net/http leaves it out
			}
			b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
		}
	}
	b = append(b, "\r\n"...)
	start, end := len(b), len(b)+int(req.ContentLength)
	b = slices.Grow(b, end+1-start)[:end+1]
	n, err := io.ReadFull(req.Body, b[start:])
	if start+n != end || err != io.ErrUnexpectedEOF {
		return b[:start], errors.New("http1: the body of the request is not as long as its ContentLength")
	}
	return b[:end], nil
}
