package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateReference = flag.Bool("update-config", false, "write docs/reference/config.md anew")

// TestReference compares docs/reference/config.md with the types. -update-config writes the page.
func TestReference(t *testing.T) {
	page := filepath.Join("..", "docs", "reference", "config.md")
	want := referencePage(t)
	if *updateReference {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "%s is stale; run go test ./config -run Reference -update-config", page)
}

// A section is a struct of the configuration.
type section struct {
	path, doc string
	typ       reflect.Type
}

// referencePage describes the keys with the doc comments of their fields.
func referencePage(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# What can be configured?\n\n" +
		"<!-- Written by TestReference of package config: go test ./config -run Reference -update-config -->\n\n" +
		"Package `config` reads these keys from a file, and from the environment. False for `exposeErrors` or\n" +
		"`stepUp` does not turn off what code turns on. [Limits](limits.md) has the defaults. [How do I\n" +
		"configure a server?](../howto/configure.md)\n\n" +
		"A duration is written as \"30s\" or \"1h30m\", a size as 4096 or \"4MiB\", a reference to a secret as\n" +
		"`env:NAME` or `file:PATH`. In a variable, commas separate the items of a list.\n")
	docs := fieldDocs(t)
	for sections := []section{{typ: reflect.TypeFor[Config]()}}; len(sections) > 0; {
		s := sections[0]
		sections = sections[1:]
		var below []section
		if s.path != "" {
			fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", s.path, s.doc)
		}
		var rows strings.Builder
		for _, f := range reflect.VisibleFields(s.typ) {
			key, doc := f.Tag.Get("yaml"), docs[s.typ.Name()+"."+f.Name]
			if key == "" {
				continue
			}
			require.True(t, strings.HasSuffix(doc, "."), "%s has no description", key)
			path := strings.TrimPrefix(s.path+"."+key, ".")
			if f.Tag.Get("prefix") != "" {
				require.Equal(t, key+".", f.Tag.Get("prefix"))
				below = append(below, section{path, doc, f.Type})
				continue
			}
			variable := (&loader{prefix: defaultPrefix}).variable(path)
			fmt.Fprintf(&rows, "| `%s` | %s | `%s` | %s |\n", key, valueOf(t, f), variable, doc)
		}
		if rows.Len() > 0 {
			b.WriteString("\n| key | value | variable | means |\n|---|---|---|---|\n" + rows.String())
		}
		sections = append(below, sections...)
	}
	return b.String()
}

// valueOf describes the values of a field.
func valueOf(t *testing.T, f reflect.StructField) string {
	rule := f.Tag.Get("validate")
	if _, words, ok := strings.Cut(rule, "oneof="); ok {
		return strings.ReplaceAll(words, " ", ", ")
	}
	typ := f.Type
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	value := map[string]string{
		"bool": "true or false", "int": "number", "float64": "number", "string": "text",
		"time.Duration": "duration", "config.Size": "size", "slog.Level": "level", "config.Path": "file",
		"config.Secret": "reference", "config.EngineURL": "URL, or a reference to one",
		"[]string": "list", "[]config.Secret": "list of references", "[]netip.Prefix": "list of networks",
	}[typ.String()]
	require.NotEmpty(t, value, typ.String())
	if strings.HasPrefix(rule, "required") && !strings.HasPrefix(rule, "required_with") {
		value += ", required"
	}
	return value
}

// fieldDocs returns the comments of fields, by TYPE.FIELD.
func fieldDocs(t *testing.T) map[string]string {
	docs := map[string]string{}
	inspect := func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range typ.Fields.List {
				docs[spec.Name.Name+"."+f.Names[0].Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
		return false
	}
	for _, path := range []string{"config.go", "../ext/catalog/select.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, inspect)
	}
	return docs
}

func TestMiddlewareRunsInTheOrderThatThePageNames(t *testing.T) {
	c, err := Parse("c.yaml", []byte(`
middleware:
  logging: true
  audit: {file: `+filepath.Join(t.TempDir(), "audit")+`}
  errorCodes: true
  rateLimit: {perSecond: 1, burst: 1}
  concurrency: 1
  timeout: 1m
  maxResult: 64KiB
  cache: 1h
`), Environ(nil))
	require.NoError(t, err)
	mw, err := c.Middlewares()
	require.NoError(t, err)
	var made []string
	for _, m := range mw {
		made = append(made, runtime.FuncForPC(reflect.ValueOf(m).Pointer()).Name())
	}
	for i, name := range []string{"Logging", "Audit", "ErrorCodes", "RateLimit", "Concurrency", "Timeout", "ResultLimit", "Cache"} {
		require.Contains(t, made[i], name)
	}
	require.Len(t, made, 8)
	require.Contains(t, referencePage(t), "it is logging, audit, errorCodes, rateLimit, concurrency, timeout, maxResult and cache.")
}

func TestEachKeyHasAVariable(t *testing.T) {
	all := paths()
	for _, path := range []string{"transport.http.jsonOnly", "auth.jwksURI", "middleware.rateLimit.perSecond", "transport.http.tls.key"} {
		require.Contains(t, all, path)
	}
	l := &loader{prefix: "X_"}
	require.Equal(t, "X_AUTH_JWKS_URI", l.variable("auth.jwksURI"))
	require.Equal(t, "X_SERVER_STATE_KEYS", l.variable("server.stateKeys[1]"))
	require.Equal(t, "X_EXCLUDE_TOOLS", l.variable("select.except[0]"))
	byVariable := map[string]string{}
	for _, path := range all {
		require.Empty(t, byVariable[l.variable(path)], path)
		byVariable[l.variable(path)] = path
	}
}
