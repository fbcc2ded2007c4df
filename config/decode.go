package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mcpkit/mcpkit-go/internal/nearest"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeSize     = reflect.TypeFor[Size]()
	typeLevel    = reflect.TypeFor[slog.Level]()
	typeSecret   = reflect.TypeFor[Secret]()
	typePath     = reflect.TypeFor[Path]()
)

// A field is a key: a field of a struct by its tags.
type field struct {
	index    int
	key      string
	path     string // from the root
	typ      reflect.Type
	required bool
	min      float64
	hasMin   bool
	enum     []string
	doc      string
}

// isStruct reports whether the value of the field is a map with keys of its own.
func (f *field) isStruct() bool { return f.typ.Kind() == reflect.Struct && f.typ != typeSecret }

// variable is the name that the field has in the environment, less the prefix.
func (f *field) variable() string { return variableOf(f.path) }

// variableOf makes "transport.http.maxBody" TRANSPORT_HTTP_MAX_BODY.
func variableOf(path string) string {
	var b strings.Builder
	runes := []rune(path)
	for i, r := range runes {
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// fieldsOf reads the keys of a struct.
func fieldsOf(t reflect.Type, at string) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		f := field{index: i, key: sf.Tag.Get("key"), typ: sf.Type, doc: sf.Tag.Get("doc")}
		f.path = f.key
		if at != "" {
			f.path = at + "." + f.key
		}
		if f.typ.Kind() == reflect.Pointer {
			f.typ = f.typ.Elem()
		}
		_, f.required = sf.Tag.Lookup("required")
		if text, ok := sf.Tag.Lookup("min"); ok {
			f.min, _ = strconv.ParseFloat(text, 64) // the tags are this package's own, and tested
			f.hasMin = true
		}
		if text, ok := sf.Tag.Lookup("enum"); ok {
			f.enum = strings.Fields(text)
		}
		fields = append(fields, f)
	}
	return fields
}

// decodeRoot fills c from the file and then from the environment.
func (l *loader) decodeRoot(c *Config, root *node) {
	v := reflect.ValueOf(c).Elem()
	if root != nil {
		l.object(v, "", root)
	}
	known := map[string]bool{}
	l.fromEnv(v, "", known)
	for _, name := range l.variables() {
		if !known[name] && !l.used[name] {
			names := make([]string, 0, len(known))
			for k := range known {
				names = append(names, k)
			}
			slices.Sort(names)
			l.envFault(name, "unknown variable%s", nearest.Hint(name, names))
		}
	}
	if l.faults == nil {
		l.complete(v, "", root)
	}
	if l.faults == nil {
		l.consistent(c)
	}
}

// object fills a struct from a map.
func (l *loader) object(v reflect.Value, at string, n *node) {
	if n.kind != object {
		l.fault(n.line, at, "here is %s; a map is wanted", n.kind)
		return
	}
	fields := fieldsOf(v.Type(), at)
	for _, m := range n.fields {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == m.key })
		if i < 0 {
			keys := make([]string, len(fields))
			for i, f := range fields {
				keys[i] = f.key
			}
			path := m.key
			if at != "" {
				path = at + "." + m.key
			}
			l.fault(m.line, path, "unknown key%s", nearest.Hint(m.key, keys))
			continue
		}
		f := &fields[i]
		if f.isStruct() {
			l.object(allocated(v.Field(f.index)), f.path, m.value)
		} else {
			l.value(v.Field(f.index), f, m.value, m.line)
		}
	}
}

// allocated is what v points to, made if need be, or v itself.
func allocated(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// value fills a field from a value of a file.
func (l *loader) value(v reflect.Value, f *field, n *node, line int) {
	if n.line > 0 {
		line = n.line
	}
	if f.typ.Kind() != reflect.Slice {
		if n.kind != scalar {
			l.fault(line, f.path, "here is %s; want %s", n.kind, wanted(f))
			return
		}
		if err := l.set(allocated(v), f, n.text, n.quoted); err != nil {
			l.fault(line, f.path, "%v", err)
		}
		return
	}
	if n.kind != list {
		l.fault(line, f.path, "here is %s; want %s", n.kind, wanted(f))
		return
	}
	all := reflect.MakeSlice(f.typ, 0, len(n.items))
	for i, it := range n.items {
		item := reflect.New(f.typ.Elem()).Elem()
		element := *f
		element.typ = f.typ.Elem()
		path := fmt.Sprintf("%s[%d]", f.path, i)
		if it.kind != scalar {
			l.fault(it.line, path, "here is %s; want %s", it.kind, wanted(&element))
		} else if err := l.set(item, &element, it.text, it.quoted); err != nil {
			l.fault(it.line, path, "%v", err)
		}
		all = reflect.Append(all, item)
	}
	v.Set(all)
}

// fromEnv fills a struct from the environment.
func (l *loader) fromEnv(v reflect.Value, at string, known map[string]bool) {
	if l.prefix == "" {
		return
	}
	for _, f := range fieldsOf(v.Type(), at) {
		if f.isStruct() {
			inner := v.Field(f.index)
			if inner.Kind() == reflect.Pointer && inner.IsNil() && !l.anyBelow(f.path, f.typ) {
				l.note(f.typ, f.path, known)
				continue
			}
			l.fromEnv(allocated(inner), f.path, known)
			continue
		}
		name := l.prefix + f.variable()
		known[name] = true
		if text := l.env[name]; text != "" {
			l.variable(v.Field(f.index), &f, name, text)
		}
	}
}

// note makes the names below a struct known that nothing is said of.
func (l *loader) note(t reflect.Type, at string, known map[string]bool) {
	l.fromEnv(reflect.New(t).Elem(), at, known)
}

// anyBelow reports whether a variable says something of a struct.
func (l *loader) anyBelow(at string, t reflect.Type) bool {
	return slices.ContainsFunc(fieldsOf(t, at), func(f field) bool {
		if f.isStruct() {
			return l.anyBelow(f.path, f.typ)
		}
		return l.env[l.prefix+f.variable()] != ""
	})
}

// variable fills a field from a variable; the items of a list stand between commas.
func (l *loader) variable(v reflect.Value, f *field, name, text string) {
	if f.typ.Kind() != reflect.Slice {
		if err := l.set(allocated(v), f, text, false); err != nil {
			l.envFault(name, "%v", err)
		}
		return
	}
	all := reflect.MakeSlice(f.typ, 0, 4)
	element := *f
	element.typ = f.typ.Elem()
	for part := range strings.SplitSeq(text, ",") {
		item := reflect.New(f.typ.Elem()).Elem()
		if err := l.set(item, &element, strings.TrimSpace(part), false); err != nil {
			l.envFault(name, "%v", err)
		}
		all = reflect.Append(all, item)
	}
	v.Set(all)
}

// wanted says what a value has to look like.
func wanted(f *field) string {
	switch {
	case f.enum != nil:
		return "one of " + strings.Join(f.enum, ", ")
	case f.typ == typeDuration:
		return `a duration such as "30s" or "1h30m"`
	case f.typ == typeSize:
		return `a number of bytes such as 4096 or "4MiB"`
	case f.typ == typeLevel:
		return "one of debug, info, warn, error"
	case f.typ == typeSecret:
		return "a reference, env:NAME or file:PATH, since secrets do not belong here"
	case f.typ == typePath:
		return "the path of a file"
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "a text"
}

// set parses one value.
func (l *loader) set(v reflect.Value, f *field, text string, quoted bool) error {
	bad := func() error { return fmt.Errorf("%q is not what is wanted: %s", clip(text), wanted(f)) }
	var number float64
	switch f.typ {
	case typeSecret:
		s, err := l.secret(text)
		v.Set(reflect.ValueOf(s))
		return err
	case typeLevel:
		if !slices.Contains([]string{"debug", "info", "warn", "error"}, strings.ToLower(text)) {
			return bad()
		}
		var level slog.Level
		_ = level.UnmarshalText([]byte(text)) // one of four
		v.Set(reflect.ValueOf(level))
		return nil
	case typePath:
		if text == "" {
			return bad()
		}
		v.SetString(l.path(text))
		return nil
	case typeDuration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return bad()
		}
		v.SetInt(int64(d))
		number = float64(d)
	case typeSize:
		n, ok := parseSize(text)
		if !ok {
			return bad()
		}
		v.SetInt(n)
		number = float64(n)
	default:
		ok := false
		if number, ok = setPlain(v, f, text, quoted); !ok {
			return bad()
		}
	}
	if f.hasMin && number < f.min {
		if f.typ == typeDuration {
			return errors.New("it has to be more than 0")
		}
		return fmt.Errorf("%s is too little; at least %v is wanted", text, f.min)
	}
	return nil
}

// setPlain parses a value of one of Go's own types.
func setPlain(v reflect.Value, f *field, text string, quoted bool) (number float64, ok bool) {
	switch f.typ.Kind() {
	case reflect.Bool:
		v.SetBool(text == "true")
		return 0, !quoted && (text == "true" || text == "false")
	case reflect.Int:
		n, err := strconv.Atoi(text)
		v.SetInt(int64(n))
		return float64(n), err == nil && !quoted
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		return x, err == nil && !quoted && !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	v.SetString(text)
	return 0, text != "" && (f.enum == nil || slices.Contains(f.enum, text))
}

// clip shortens what a message quotes.
func clip(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "..."
	}
	return text
}

// parseSize reads a number of bytes.
func parseSize(text string) (int64, bool) {
	digits := strings.TrimRight(text, "KMGTiB")
	factor, ok := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[text[len(digits):]]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, false
	}
	return n * factor, true
}

// maxSecret bounds a file with a secret, in bytes.
const maxSecret = 64 << 10

// path is that of a file that was named.
func (l *loader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// secret reads what a reference names. No error says what was read.
func (l *loader) secret(ref string) (Secret, error) {
	s := Secret{from: ref}
	rest, coded := strings.CutPrefix(ref, "base64:")
	scheme, name, ok := strings.Cut(rest, ":")
	switch {
	case ok && scheme == "env" && name != "":
		l.used[name] = true
		s.value = []byte(l.env[name])
		if len(s.value) == 0 {
			return s, fmt.Errorf("the variable %s, where the secret should be, is not set", name)
		}
	case ok && scheme == "file" && name != "":
		name = l.path(name)
		f, err := os.Open(name)
		if err != nil {
			return s, fmt.Errorf("the secret cannot be read: %w", err)
		}
		defer f.Close()
		if s.value, err = io.ReadAll(io.LimitReader(f, maxSecret)); err != nil {
			return s, fmt.Errorf("the secret cannot be read: %w", err)
		}
		s.value = bytes.TrimRight(s.value, " \t\r\n")
		if len(s.value) == 0 {
			return s, fmt.Errorf("the file %s, where the secret should be, is empty", name)
		}
	default:
		return Secret{}, errors.New("here is a text; want a reference, env:NAME or file:PATH, since secrets do not belong here")
	}
	if coded {
		decoded, err := base64.StdEncoding.DecodeString(string(s.value))
		if err != nil {
			return s, errors.New("what the reference names is not base64")
		}
		s.value = decoded
	}
	return s, nil
}

// complete finds keys that are missing.
func (l *loader) complete(v reflect.Value, at string, n *node) {
	for _, f := range fieldsOf(v.Type(), at) {
		field := v.Field(f.index)
		if f.required && field.IsZero() {
			line := 0
			if n != nil {
				line = n.line
			}
			l.fault(line, f.path, "it is missing; want %s", wanted(&f))
		}
		if !f.isStruct() || field.Kind() == reflect.Pointer && field.IsNil() {
			continue
		}
		l.complete(reflect.Indirect(field), f.path, n.child(f.key))
	}
}

// child is the value of a key; nil where there is none.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.fields {
		if m.key == key {
			if m.value.line == 0 || m.line < m.value.line {
				m.value.line = m.line
			}
			return m.value
		}
	}
	return nil
}

// consistent finds what does not go together.
func (l *loader) consistent(c *Config) {
	if (c.Server.Name == "") != (c.Server.Version == "") {
		l.fault(0, "server.name", "name and version go together; say both")
	}
	if c.Auth != nil && c.Transport.HTTP == nil {
		l.fault(0, "auth", "tokens come over HTTP; say transport.http.addr, too")
	}
	for i, key := range c.Server.StateKeys {
		l.longEnough(fmt.Sprintf("server.stateKeys[%d]", i), key)
	}
	if c.Transport.HTTP != nil {
		l.distinct(c.Transport.HTTP)
	}
	if c.Auth != nil {
		l.consistentAuth(c.Auth)
	}
}

// longEnough finds keys that could be guessed.
func (l *loader) longEnough(at string, key Secret) {
	if n := len(key.value); n < 32 {
		l.fault(0, at, "the key has %d bytes; at least 32 random ones are wanted", n)
	}
}

// distinct finds paths that cannot be served, and those that are said twice.
func (l *loader) distinct(h *HTTP) {
	taken := map[string]string{}
	if or(h.Health, false) {
		taken[livePath], taken[readyPath] = "transport.http.health", "transport.http.health"
	}
	endpoint := h.Path
	if endpoint == "" {
		endpoint = streamable.DefaultPath
	}
	for _, p := range [][2]string{{"path", endpoint}, {"sse", h.SSE}, {"websocket", h.WebSocket}} {
		at, path := "transport.http."+p[0], p[1]
		if path == "" {
			continue
		}
		if by := taken[path]; by != "" {
			l.fault(0, at, "%q is served by %s already", path, by)
			continue
		}
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "{} ?#") {
			l.fault(0, at, "%q is no path; write for example %q", clip(path), "/v1")
		}
		taken[path] = at
	}
}

// consistentAuth finds what does not go together of auth.
func (l *loader) consistentAuth(a *Auth) {
	if a.DPoP != nil && a.DPoP.NonceKey != nil {
		l.longEnough("auth.dpop.nonceKey", *a.DPoP.NonceKey)
	}
	in := a.Introspection
	if in == nil {
		return
	}
	for _, k := range []struct {
		key  string
		said bool
	}{{"jwksURI", a.JWKSURI != ""}, {"algorithms", a.Algorithms != nil}, {"allowUntyped", a.AllowUntyped != nil}} {
		if k.said {
			l.fault(0, "auth."+k.key, "it is for tokens that are checked here, and auth.introspection asks about all of them; leave one out")
		}
	}
	if (in.ClientID == "") != (in.ClientSecret == nil) {
		l.fault(0, "auth.introspection", "clientID and clientSecret go together; say both")
	}
}
