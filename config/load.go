package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// defaultPrefix is the prefix of the names of environment variables.
const defaultPrefix = "MCPKIT_"

// An Option changes how [Load] and [Parse] read the environment.
type Option func(*loader)

// Prefix replaces the prefix MCPKIT_ of the names of environment variables. With the prefix "", nothing
// is read from the environment.
func Prefix(p string) Option { return func(l *loader) { l.prefix = p } }

// Environ replaces os.Environ by a list of "KEY=value".
func Environ(all []string) Option { return func(l *loader) { l.env = env.ToMap(all) } }

// A loader reads a configuration and collects what is wrong with it.
type loader struct {
	file   string // as shown in errors
	prefix string

	env    map[string]string
	known  []string          // variables that name keys
	used   map[string]bool   // further variables that are read, by this package or by command mcpkit
	paths  map[string]string // of the keys and values of the file, by "line:column"
	faulty map[string]bool   // paths that have a fault
	faults []error
}

// Load reads the file at path, if path is not "", and the environment. The error joins all
// mistakes.
func Load(path string, opts ...Option) (*Config, error) {
	var data []byte
	if path != "" {
		var err error
		if data, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	return Parse(path, data, opts...)
}

// Parse is like [Load], for the contents of a file. name is the path of the file: errors contain
// it, and relative paths in the file start at its folder.
func Parse(name string, data []byte, opts ...Option) (*Config, error) {
	l := &loader{
		file: name, prefix: defaultPrefix, env: env.ToMap(os.Environ()), used: map[string]bool{ofCommand: true},
		paths: map[string]string{}, faulty: map[string]bool{},
	}
	for _, o := range opts {
		o(l)
	}
	c := new(Config)
	l.decode(c, data)
	l.variables(c)
	if h := &c.Transport.HTTP; h.Addr != "" {
		h.Path = cmp.Or(h.Path, "/mcp")
	}
	l.secrets(c)
	l.texts(c)
	l.unknown()
	l.check(c)
	if err := errors.Join(l.faults...); err != nil {
		return nil, err
	}
	return c, nil
}

// fault adds a mistake of a value, from the file or from the environment.
func (l *loader) fault(path, format string, args ...any) {
	where, key := l.file, path
	if name := l.variable(path); l.prefix != "" && l.env[name] != "" {
		where, key = "environment", name
	}
	l.faultIn(where, path, key+": "+format, args...)
}

// faultIn adds a mistake of the value at path. A value has only its first mistake: what is found
// later may follow from that.
func (l *loader) faultIn(where, path, format string, args ...any) {
	if !l.faulty[path] {
		l.faults = append(l.faults, fmt.Errorf("config: "+where+": "+format, args...))
	}
	l.faulty[path] = true
}

// decode fills c from the file.
func (l *loader) decode(c *Config, data []byte) {
	var documents []yaml.Node
	err := yaml.Load(data, &documents, yaml.WithAllDocuments())
	if len(documents) > 1 {
		err = errors.New("it has several documents; one is read")
	} else if err == nil && len(documents) == 1 {
		l.note("", &documents[0])
		err = documents[0].Load(c, yaml.WithKnownFields())
	}
	if all, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		for _, e := range all.Errors {
			l.wrong(e)
		}
	} else if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		l.faultIn(l.file+":"+position(e.Mark.Line, e.Mark.Column), "", "it is not valid YAML: %s", e.Message)
	} else if err != nil {
		l.faultIn(l.file, "", "%w", err)
	}
}

// note records where the keys and the values below n are.
func (l *loader) note(path string, n *yaml.Node) {
	l.paths[position(n.Line, n.Column)] = path
	for i, child := range n.Content {
		below := path
		switch n.Kind {
		case yaml.SequenceNode:
			below = fmt.Sprintf("%s[%d]", path, i)
		case yaml.MappingNode: // keys and values by turns
			below = strings.TrimPrefix(path+"."+n.Content[i&^1].Value, ".")
		}
		l.note(below, child)
	}
}

func position(line, column int) string { return fmt.Sprintf("%d:%d", line, column) }

var badType = regexp.MustCompile(`^cannot construct .* into (.+)$`)

// wrong adds an error of the library, without the values that it quotes, which may be secrets.
func (l *loader) wrong(e *yaml.LoadError) {
	at := position(e.Mark.Line, e.Mark.Column)
	path, why := l.paths[at], strings.Replace(e.Message, "unknown name", "write debug, info, warn or error", 1) // of slog
	if parts := badType.FindStringSubmatch(why); parts != nil {
		why = "this is not valid; want " + cmp.Or(wanted[parts[1]], "keys with values")
	} else if strings.HasPrefix(why, "field ") {
		why = "unknown key" + naming.Hint(path, paths())
	}
	l.faultIn(l.file+":"+at, path, "%s: %s", path, why)
}

// wanted describes the values of types.
var wanted = map[string]string{
	"bool": "true or false", "int": "a whole number", "float64": "a number", "string": "a text", "config.Path": "a text",
	"time.Duration": `a duration such as "30s" or "1h30m"`, "config.Size": `a number of bytes such as 4096 or "4MiB"`,
	"[]string": "a list", "[]config.Secret": "a list", "[]netip.Prefix": "a list",
}

// environment makes the keys of a file those of package env.
func environment(vars map[string]string) env.Options {
	lists := func(text string) (any, error) {
		var all map[string][]string
		err := jsonx.Unmarshal([]byte(text), &all)
		return all, err
	}
	return env.Options{
		Environment: vars, TagName: "yaml", PrefixTagName: "prefix",
		FuncMap: map[reflect.Type]env.ParserFunc{reflect.TypeFor[map[string][]string](): lists},
	}
}

// paths returns the paths of all keys.
func paths() (all []string) {
	fields, _ := env.GetFieldParamsWithOptions(new(Config), environment(map[string]string{"": ""})) // the tags are valid
	for _, f := range fields {
		all = append(all, f.Key)
	}
	return all
}

// ofCatalog gives the keys of select the variables of catalog.FromEnv.
var ofCatalog = strings.NewReplacer("select.readOnly", "readonly", "select.except", "excludeTools", "select.", "")

var wordEnd = regexp.MustCompile(`([a-z])([A-Z])|\.`)

// variable returns the name of the environment variable for a path, such as
// MCPKIT_TRANSPORT_HTTP_MAX_BODY for transport.http.maxBody.
func (l *loader) variable(path string) string {
	path, _, _ = strings.Cut(path, "[")
	return l.prefix + strings.ToUpper(wordEnd.ReplaceAllString(ofCatalog.Replace(path), "${1}_${2}"))
}

// ofCommand is a variable of command mcpkit, whose servers may have its environment.
const ofCommand = "MCPKIT_CLIENT_SECRET"

// variables fills c from the environment. Commas separate the items of a list.
func (l *loader) variables(c *Config) {
	for _, path := range paths() {
		name := l.variable(path)
		l.known = append(l.known, name)
		text := l.env[name]
		if text == "" || l.prefix == "" {
			continue
		}
		err := env.ParseWithOptions(c, environment(map[string]string{path: text}))
		if e, ok := errors.AsType[env.ParseError](err); ok {
			err = e.Err
		}
		if err != nil {
			l.fault(path, "%w", err)
		}
	}
}

// unknown finds variables with the prefix that name no key.
func (l *loader) unknown() {
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		ours := l.prefix != "" && strings.HasPrefix(name, l.prefix) && l.env[name] != ""
		if ours && !slices.Contains(l.known, name) && !l.used[name] {
			l.faultIn("environment", name, "%s: unknown variable%s", name, naming.Hint(name, l.known))
		}
	}
}

// secrets reads what the values of c refer to.
func (l *loader) secrets(c *Config) {
	t := &c.Transport
	for _, p := range []*Path{&c.Overrides, &t.Unix.Path, &t.HTTP.TLS.Certificate, &t.HTTP.TLS.Key, &c.Middleware.Audit.File} {
		*p = Path(l.path(string(*p)))
	}
	for i := range c.Server.StateKeys {
		path, key := fmt.Sprintf("server.stateKeys[%d]", i), &c.Server.StateKeys[i]
		if l.secret(path, key); len(key.value) < 32 {
			l.fault(path, "the key has %d bytes; want at least 32 random bytes", len(key.value))
		}
	}
	l.secret("auth.introspection.clientSecret", &c.Auth.Introspection.ClientSecret)
	l.secret("auth.login.clientSecret", &c.Auth.Login.ClientSecret)
	l.secret("fleet", &c.Fleet.Secret)
}

// texts reads the overrides, which variables such as MCPKIT_TOOL_SEARCH_DESCRIPTION have as well.
func (l *loader) texts(c *Config) {
	var file []byte
	var err error
	if c.Overrides != "" {
		file, err = os.ReadFile(string(c.Overrides))
	}
	var environ []string
	for name, value := range l.env {
		if rest, ours := strings.CutPrefix(name, l.prefix+"TOOL_"); ours && value != "" && l.prefix != "" {
			environ = append(environ, "MCPKIT_TOOL_"+rest+"="+value)
			l.used[name] = true
		}
	}
	if err == nil && (file != nil || environ != nil) {
		c.texts, err = catalog.Overrides(file, environ)
	}
	if err != nil {
		l.fault("overrides", "%w", err)
	}
}

// path returns the path of a named file.
func (l *loader) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(l.file), name)
}

// UnmarshalText reads 4096, 64KiB, 4MiB or 1GiB.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "KMGTiB")
	units := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	factor, ok := units[string(text[len(digits):])]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%.60q is not valid; want %s", text, wanted["config.Size"])
	}
	*s = Size(n * factor)
	return nil
}
