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

// referencePage describes the keys with the doc comments of their fields, in a table for each section.
func referencePage(t *testing.T) string {
	var b, sections strings.Builder
	b.WriteString("# Configuration keys\n\n" +
		"<!-- Written by TestReference of package config: go test ./config -run Reference -update-config -->\n\n" +
		"For servers that are [configured](../howto/configure.md) by a file or the environment. The variable\n" +
		"of `server.toolTimeout` is `MCPKIT_SERVER_TOOL_TIMEOUT`, and so on, unless the table names another\n" +
		"one; in variables, commas separate the items of a list. A duration is \"30s\" or \"1h30m\", a size 4096\n" +
		"or \"4MiB\", a reference to a secret `env:NAME` or `file:PATH`. [Limits](limits.md) has the\n" +
		"defaults.\n" + tableHead)
	docs := fieldDocs(t)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		switch key := f.Tag.Get("yaml"); {
		case f.Tag.Get("prefix") != "":
			fmt.Fprintf(&sections, "\n## `%s`\n\n%s\n%s", key, docs["Config."+f.Name], tableHead)
			writeRows(t, &sections, docs, key, f.Type)
		case key != "":
			writeRow(t, &b, docs["Config."+f.Name], key, f)
		}
	}
	return b.String() + sections.String()
}

const tableHead = "\n| key | means |\n|---|---|\n"

// writeRows writes a row for each field of a section, and for those of the sections in it.
func writeRows(t *testing.T, b *strings.Builder, docs map[string]string, path string, typ reflect.Type) {
	for _, f := range reflect.VisibleFields(typ) {
		key, doc := f.Tag.Get("yaml"), docs[typ.Name()+"."+f.Name]
		if key == "" {
			continue
		}
		writeRow(t, b, doc, path+"."+key, f)
		if f.Tag.Get("prefix") != "" {
			require.Equal(t, key+".", f.Tag.Get("prefix"))
			writeRows(t, b, docs, path+"."+key, f.Type)
		}
	}
}

// writeRow writes the row of a key or a section.
func writeRow(t *testing.T, b *strings.Builder, doc, path string, f reflect.StructField) {
	require.True(t, strings.HasSuffix(doc, "."), "%s has no description", path)
	key := "`" + path + "`"
	if f.Tag.Get("prefix") == "" {
		key += " " + valueOf(t, f)
	}
	if strings.HasPrefix(path, "select.") { // whose variables are those of catalog.FromEnv
		doc += " `" + (&loader{prefix: defaultPrefix}).variable(path) + "`"
	}
	fmt.Fprintf(b, "| %s | %s |\n", key, doc)
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
		"bool": "bool", "int": "number", "float64": "number", "string": "text",
		"time.Duration": "duration", "config.Size": "size", "slog.Level": "level", "config.Path": "file",
		"config.Secret": "reference", "config.EngineURL": "URL, or a reference to one",
		"map[string][]string": "lists by name", "[]string": "list", "[]config.Secret": "list of references", "[]netip.Prefix": "list of networks",
	}[typ.String()]
	require.NotEmpty(t, value, typ.String())
	if first, _, _ := strings.Cut(rule, ","); first == "required" {
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
	for _, path := range []string{"config.go", "../ext/catalog/catalog.go"} {
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
