package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var updateReference = flag.Bool("update-config", false, "write docs/reference/config.md anew")

// TestReference compares docs/reference/config.md with the types. -update-config writes the page.
func TestReference(t *testing.T) {
	page := filepath.Join("..", "docs", "reference", "config.md")
	want := reference()
	if *updateReference {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "%s is stale; run go test ./config -run Reference -update-config", page)
}

func reference() string {
	var b strings.Builder
	b.WriteString("# What can be configured?\n\n" +
		"<!-- Written by TestReference of package config: go test ./config -run Reference -update-config -->\n\n" +
		"Package `config` reads these keys from a file (YAML or JSON) and from the environment. Each key is\n" +
		"listed with its environment variable. The file overrides code, and the environment overrides the\n" +
		"file. One thing stays as code has it: false for `exposeErrors`, `repair` or `stepUp` does not turn off\n" +
		"what code turns on. Any other key or variable is an error, which names the nearest known one. In a\n" +
		"variable, separate the items of a list with commas. [Limits](limits.md) lists the defaults of the\n" +
		"limits. [How do I configure a server?](../howto/configure.md)\n")
	section(&b, reflect.TypeFor[Config](), "", "")
	return b.String()
}

func section(b *strings.Builder, t reflect.Type, at, doc string) {
	fields := fieldsOf(t, at)
	var plain []field
	for _, f := range fields {
		if !f.isStruct() {
			plain = append(plain, f)
		}
	}
	if at != "" {
		fmt.Fprintf(b, "\n## `%s`\n\n%s\n", at, doc)
	}
	if plain != nil {
		b.WriteString("\n| key | value | variable | means |\n|---|---|---|---|\n")
		for _, f := range plain {
			value := wanted(&f)
			if f.typ.Kind() == reflect.Slice {
				value = "a list: each " + wanted(f.element())
			}
			if f.required {
				value += "; required"
			}
			if f.hasMin && f.typ != reflect.TypeFor[time.Duration]() {
				value += ", at least " + strconv.FormatFloat(f.min, 'g', -1, 64)
			}
			fmt.Fprintf(b, "| `%s` | %s | `%s` | %s |\n", f.key, value, DefaultPrefix+f.variable(), f.doc)
		}
	}
	for _, f := range fields {
		if f.isStruct() {
			section(b, f.typ, f.path, f.doc)
		}
	}
}

func TestMiddlewareRunsInTheOrderThatThePageNames(t *testing.T) {
	c, err := Parse("c.yaml", []byte(`
middleware:
  logging: {}
  audit: {file: `+filepath.Join(t.TempDir(), "audit")+`}
  errorCodes: true
  rateLimit: {perSecond: 1, burst: 1}
  concurrency: {limit: 1}
  timeout: 1m
  resultLimit: {maxBytes: 64KiB}
  cache: {ttl: 1h}
`), Environ(nil))
	require.NoError(t, err)
	mw, end, err := c.Middlewares()
	require.NoError(t, err)
	require.NoError(t, end())
	keys := fieldsOf(reflect.TypeFor[Middleware](), "")
	require.Len(t, mw, len(keys))
	var names []string
	for i, key := range keys {
		made := runtime.FuncForPC(reflect.ValueOf(mw[i]).Pointer()).Name()
		require.Contains(t, strings.ToLower(made), strings.ToLower(key.key))
		names = append(names, key.key)
	}
	last := len(names) - 1
	list := strings.Join(names[:last], ", ") + " and " + names[last]
	require.Contains(t, reference(), "From the outermost to the innermost, it is "+list+".")
}

// TestFieldTagsAreValid checks that the loader understands the tags.
func TestFieldTagsAreValid(t *testing.T) {
	variables := map[string]string{}
	var walk func(typ reflect.Type, at string)
	walk = func(typ reflect.Type, at string) {
		for _, f := range fieldsOf(typ, at) {
			require.NotEmpty(t, f.key, "%s.%s", typ, typ.FieldByIndex(f.index).Name)
			require.NotEmpty(t, f.doc, f.path)
			require.True(t, strings.HasSuffix(f.doc, "."), f.path)
			if text, ok := typ.FieldByIndex(f.index).Tag.Lookup("min"); ok {
				_, err := strconv.ParseFloat(text, 64)
				require.NoError(t, err, f.path)
			}
			if f.isStruct() {
				walk(f.typ, f.path)
				continue
			}
			require.Empty(t, variables[f.variable()], "%s has the variable of another key", f.path)
			variables[f.variable()] = f.path
			kind := f.typ.Kind()
			if kind == reflect.Slice {
				kind = f.typ.Elem().Kind()
			}
			require.Contains(t, []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64, reflect.Struct}, kind, f.path)
		}
	}
	walk(reflect.TypeFor[Config](), "")
	require.Equal(t, "auth.jwksURI", variables["AUTH_JWKS_URI"])
	require.Equal(t, "transport.http.jsonOnly", variables["TRANSPORT_HTTP_JSON_ONLY"])
}
