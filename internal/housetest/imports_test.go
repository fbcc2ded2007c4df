package housetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/mcpkit/mcpkit-go"

// anything lets a package import whatever it likes. Programs at the top may.
var anything = []string{"*"}

// mayImport says, for each package of this module, what it may import beside the standard library,
// test files left aside: packages of this module by their path in it, others by their import path.
// Arrows point down only (DESIGN: packages). A row that ends in /... stands for all packages below
// it that have no row of their own.
var mayImport = map[string][]string{
	// The floor: what knows nothing of the protocol.
	"internal/housetest":   {},
	"internal/testkit":     {"transport", "protocol/jsonrpc", "go.uber.org/goleak"},
	"internal/oracle":      {},
	"internal/httpserve":   {"internal/conn", "transport", "oauth"},
	"internal/jsonx":       {"github.com/go-json-experiment/json", "github.com/go-json-experiment/json/jsontext", "github.com/go-json-experiment/json/v1"},
	"internal/naming":      {},
	"internal/publicnet":   {},
	"internal/limits":      {"golang.org/x/time/rate"},
	"internal/sse":         {},
	"internal/uritemplate": {},
	"protocol/jsonrpc":     {"internal/jsonx"},
	"oauth":                {}, // who is asking; what speaks HTTP lies in the packages below it
	"transport":            {"protocol/jsonrpc"},
	"fleet":                {"fleet/internal/ordered"}, // what replicas share; engines with dependencies are modules of their own
	"protocol":             {"protocol/jsonrpc", "internal/jsonx"},
	"internal/conn":        {"transport", "protocol/jsonrpc", "protocol", "internal/jsonx"},
	"reflectx": {"internal/jsonx", "internal/naming", "internal/uritemplate",
		"github.com/invopop/jsonschema", "github.com/go-playground/validator/v10",
		"golang.org/x/mod/modfile"}, // to find the source of packages
	"reflectx/rawschema": {"internal/jsonx", "reflectx", "github.com/santhosh-tekuri/jsonschema/v6",
		"golang.org/x/text/language", "golang.org/x/text/message"}, // in which santhosh-tekuri/jsonschema words its errors

	// Bindings.
	"transport/inmem":         {"internal/conn", "transport", "protocol", "protocol/jsonrpc", "internal/jsonx"},
	"transport/stdio":         {"golang.org/x/sys/unix", "transport", "oauth", "internal/conn"},
	"transport/unix":          {"golang.org/x/net/netutil", "transport", "transport/stdio"},
	"transport/streamable":    {"fleet", "internal/conn", "transport", "protocol", "protocol/jsonrpc", "oauth", "internal/sse", "internal/jsonx", "internal/httpserve", "internal/limits"},
	"transport/sse":           {"transport", "protocol/jsonrpc", "oauth", "internal/conn", "internal/sse", "internal/httpserve"},
	"transport/websocket":     {"transport", "protocol/jsonrpc", "oauth", "internal/conn", "internal/httpserve", "github.com/coder/websocket"},
	"transport/transporttest": {"internal/testkit", "transport", "protocol", "protocol/jsonrpc", "internal/jsonx", "github.com/stretchr/testify/require", "github.com/stretchr/testify/assert", "go.uber.org/goleak"},
	"oauth/internal/metadata": {"internal/jsonx", "internal/publicnet"},
	"oauth/internal/keys":     {"github.com/go-jose/go-jose/v4", "github.com/go-jose/go-jose/v4/jwt"},
	"oauth/internal/dpop":     {"fleet", "oauth/internal/keys", "oauth/internal/metadata", "internal/jsonx", "github.com/go-jose/go-jose/v4"},
	"oauth/resource": {"fleet", "oauth", "oauth/internal/metadata", "oauth/internal/dpop", "oauth/internal/keys", "internal/httpserve", "internal/jsonx", "internal/limits",
		"github.com/go-jose/go-jose/v4", "github.com/go-jose/go-jose/v4/jwt"},
	"oauth/oauthclient": {"oauth/internal/metadata", "oauth/internal/dpop", "oauth/internal/keys", "internal/jsonx", "github.com/gofrs/flock", "github.com/go-jose/go-jose/v4", "golang.org/x/oauth2"},
	"oauth/oauthtest":   {"oauth/internal/metadata", "oauth/internal/dpop", "oauth/internal/keys", "internal/jsonx", "github.com/go-jose/go-jose/v4", "github.com/go-jose/go-jose/v4/jwt", "golang.org/x/oauth2"},

	// The two sides. Neither knows the other, nor a binding over HTTP. mcpkit serves on stdio when
	// nothing else is said, and sees who is asking through the context.
	"mcpkit/internal/annotation": {"internal/jsonx", "internal/naming", "protocol", "reflectx"},
	"mcpkit/internal/result":     {"internal/jsonx", "mcpkit/internal/annotation", "protocol", "github.com/gabriel-vasile/mimetype"},
	"mcpkit/internal/rounds":     {"internal/jsonx", "protocol/jsonrpc", "protocol", "reflectx"},
	"mcpkit/internal/secret":     {"internal/jsonx", "reflectx"},
	"mcpkit/internal/service":    {"internal/naming", "mcpkit/internal/annotation", "protocol", "reflectx"},
	"mcpkit": {"fleet", "transport", "transport/stdio", "mcpkit/internal/annotation", "mcpkit/internal/result", "mcpkit/internal/rounds", "mcpkit/internal/secret", "mcpkit/internal/service", "oauth", "reflectx", "protocol", "protocol/jsonrpc",
		"internal/jsonx", "internal/limits", "internal/naming", "internal/uritemplate",
		"github.com/go-playground/validator/v10", // the option that takes a user's own
		"github.com/gabriel-vasile/mimetype"},    // which validator links anyway
	"client": {"transport", "internal/conn", "transport/inmem", "transport/websocket", "protocol", "protocol/jsonrpc", "internal/sse", "internal/jsonx", "internal/naming",
		"github.com/santhosh-tekuri/jsonschema/v6", "golang.org/x/text/language", "golang.org/x/text/message"},

	// What stands on them.
	"middleware":         {"mcpkit", "oauth", "protocol", "protocol/jsonrpc", "reflectx", "internal/jsonx", "internal/limits", "internal/memo"},
	"middleware/healthz": {}, // HTTP, beside the protocol
	"middleware/otelmcp": {"fleet", "middleware", "mcpkit", "protocol", "protocol/jsonrpc", "reflectx", "internal/jsonx",
		"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/propagation", "go.opentelemetry.io/otel/trace"},
	"transport/echomcp": {"transport", "transport/sse", "transport/streamable", "oauth", "internal/jsonx", "github.com/labstack/echo/v4"},
	"config": {"ext/catalog", "fleet", "mcpkit", "middleware", "middleware/healthz", "oauth/resource", "internal/httpserve", "internal/jsonx", "internal/naming",
		"transport", "transport/sse", "transport/stdio", "transport/streamable", "transport/unix", "transport/websocket",
		"github.com/caarlos0/env/v11", "github.com/go-playground/validator/v10", "go.yaml.in/yaml/v4"},
	"ext/apps":    {"mcpkit", "protocol", "internal/jsonx", "internal/naming"},
	"ext/catalog": {"mcpkit", "internal/limits", "internal/naming"},
	"ext/events": {"client", "fleet", "mcpkit", "transport", "protocol", "protocol/jsonrpc", "oauth", "reflectx", "internal/jsonx", "internal/limits", "internal/publicnet",
		"github.com/standard-webhooks/standard-webhooks/libraries/go"}, // signs deliveries
	"fleet/internal/ordered":      {},
	"ext/skills/internal/skillmd": {"internal/jsonx", "go.yaml.in/yaml/v4"}, // which reflectx links anyway
	"ext/skills":                  {"mcpkit", "ext/skills/internal/skillmd", "protocol", "protocol/jsonrpc", "internal/jsonx"},
	"ext/tasks":                   {"fleet", "mcpkit", "protocol", "protocol/jsonrpc", "oauth", "internal/jsonx", "golang.org/x/time/rate"},
	"fleet/fleettest":             {"fleet", "github.com/stretchr/testify/require"},
	"ext/skills/skillsclient":     {"client", "ext/skills/internal/skillmd", "protocol", "internal/jsonx"},

	"playground": {"mcpkit", "middleware", "protocol", "reflectx", "oauth", "transport/streamable", "internal/httpserve", "internal/jsonx", "internal/sse"},

	"proxy": {"mcpkit", "client", "transport", "protocol", "protocol/jsonrpc", "internal/jsonx", "golang.org/x/sync/singleflight"}, // the one place where both sides meet
	"mcptest": {"github.com/stretchr/testify/assert", "mcpkit", "client", "ext/events", "transport", "transport/stdio", "transport/streamable", "oauth", "protocol", "protocol/jsonrpc", "internal/jsonx",
		"golang.org/x/tools/txtar"}, // in which transcripts are kept

	// The top.
	"cmd/...":                  anything,
	"internal/conformance/...": anything,
	"examples/...":             anything,
	"internal/interop/...":     anything,
}

// A goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	Dir        string
	Doc        string
	Name       string
	Imports    []string
	Standard   bool
	Deps       []string
	GoFiles    []string

	TestGoFiles  []string
	XTestGoFiles []string
}

// list returns the packages that match the patterns.
func list(t *testing.T, patterns ...string) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-e", "-json"}, patterns...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		packages = append(packages, p)
	}
}

// allOurs are the packages of this module, by their path in it.
var allOurs map[string]goPackage

// ours returns allOurs, for which it runs go list once.
func ours(t *testing.T) map[string]goPackage {
	t.Helper()
	if allOurs == nil {
		allOurs = map[string]goPackage{}
		for _, p := range list(t, "./...") {
			path, ok := local(p.ImportPath)
			require.True(t, ok, p.ImportPath)
			allOurs[path] = p
		}
	}
	return allOurs
}

// local returns the path of a package within this module, and false for any other package.
func local(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// row returns what the package at path may import.
func row(path string) ([]string, bool) {
	if allowed, ok := mayImport[path]; ok {
		return allowed, true
	}
	for dir := path; dir != "."; {
		dir = filepath.ToSlash(filepath.Dir(dir))
		if allowed, ok := mayImport[dir+"/..."]; ok {
			return allowed, true
		}
	}
	return nil, false
}

func TestPackagesImportWhatTheyMay(t *testing.T) {
	for path, p := range ours(t) {
		allowed, ok := row(path)
		if !ok {
			t.Errorf("package %s has no row in mayImport; add one that says what it may import", path)
			continue
		}
		if slices.Equal(allowed, anything) {
			continue
		}
		for _, imported := range p.Imports {
			name := imported
			if l, ok := local(imported); ok {
				name = l
			} else if host, _, _ := strings.Cut(imported, "/"); !strings.Contains(host, ".") { // of the standard library
				continue
			}
			if !slices.Contains(allowed, name) {
				t.Errorf("package %s imports %s; it may import %s", path, name, strings.Join(allowed, ", "))
			}
		}
	}
}

// TestRowsPointDown holds the table itself to account: it must have no circle, or it would allow
// one.
func TestRowsPointDown(t *testing.T) {
	const (
		walking = 1
		done    = 2
	)
	state := make(map[string]int)
	var walk func(path string, trail []string)
	walk = func(path string, trail []string) {
		switch state[path] {
		case walking:
			t.Errorf("mayImport allows a circle: %s", strings.Join(append(trail, path), " -> "))
			return
		case done:
			return
		}
		state[path] = walking
		for _, next := range mayImport[path] {
			walk(next, append(slices.Clone(trail), path))
		}
		state[path] = done
	}
	for _, path := range slices.Sorted(maps.Keys(mayImport)) {
		walk(path, nil)
	}
}

// A server on stdio is a program of mcpkit and transport/stdio. HTTP, and what HTTP brings along,
// is not linked into it: package net/http alone doubles its size.
func TestStdioServersDoNotLinkHTTP(t *testing.T) {
	for _, path := range []string{"mcpkit", "transport/stdio"} {
		p := ours(t)[path]
		require.NotEmpty(t, p.GoFiles, "%s is not there", path)
		for _, banned := range []string{"net/http", "crypto/tls", "github.com/labstack/echo/v4", module + "/transport/streamable", module + "/middleware"} {
			if slices.Contains(p.Deps, banned) {
				t.Errorf("%s depends on %s: %s", p.ImportPath, banned, chain(t, p, banned))
			}
		}
	}
}

// A server that has no schemas written by hand does not link their validator, whose initialization
// takes longer than the rest of its start.
func TestServersDoNotLinkTheValidatorOfRawSchemas(t *testing.T) {
	const validator = "github.com/santhosh-tekuri/jsonschema/v6"
	linked := func(path string) bool {
		p := ours(t)[path]
		require.NotEmpty(t, p.GoFiles, path)
		has := slices.Contains(p.Deps, validator)
		if has {
			t.Logf("%s depends on %s: %s", path, validator, chain(t, p, validator))
		}
		return has
	}
	for _, path := range []string{"examples/hello", "mcpkit", "config", "transport/echomcp", "transport/streamable", "ext/tasks", "ext/skills", "ext/apps", "fleet", "middleware"} {
		require.False(t, linked(path), path)
	}
	require.True(t, linked("reflectx/rawschema"), "the module has moved; name the new one here")
}

// chain names the packages by which p comes to depend on the banned one.
func chain(t *testing.T, p goPackage, banned string) string {
	imports := map[string][]string{p.ImportPath: p.Imports}
	for _, d := range list(t, p.Deps...) {
		imports[d.ImportPath] = d.Imports
	}
	from := map[string]string{p.ImportPath: ""}
	for queue := []string{p.ImportPath}; len(queue) > 0; queue = queue[1:] {
		for _, next := range imports[queue[0]] {
			if _, seen := from[next]; seen {
				continue
			}
			from[next] = queue[0]
			queue = append(queue, next)
		}
	}
	var names []string
	for at := banned; at != ""; at = from[at] {
		names = append(names, at)
	}
	slices.Reverse(names)
	return strings.Join(names, " -> ")
}
