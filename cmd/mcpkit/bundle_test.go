package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/mcpb"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// newShop writes a new module and returns its folder.
func newShop(t *testing.T, path string) string {
	t.Helper()
	longtest.Mark(t, "builds a program")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(dir, "shop")
	code, _, errs := said(t, "new", dir, "-module", path, "-no-tidy")
	require.Equal(t, exitOK, code, errs)
	return dir
}

// unpack returns the files of a bundle, and writes them into a folder.
func unpack(t *testing.T, bundle, dir string) map[string]os.FileMode {
	t.Helper()
	z, err := zip.OpenReader(bundle)
	require.NoError(t, err)
	defer z.Close()
	files := map[string]os.FileMode{}
	for _, f := range z.File {
		files[f.Name] = f.Mode()
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, f.Mode()))
	}
	return files
}

func TestABundleHasTheProgramAndWhatItSays(t *testing.T) {
	t.Parallel()
	dir := newShop(t, "github.com/ann/shop")
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"bundle", dir, "-o", out, "-target", runtime.GOOS + "/" + runtime.GOARCH,
		"-ask", "SHOP_TOKEN=The token of your shop.", "-ask", "SHOP_CITY=Where the shop is.", "--", "-http", ""}
	code, said1, errs := said(t, args...)
	require.Equal(t, exitOK, code, errs)
	require.Empty(t, errs)
	own := fmt.Sprintf("shop-0.1.0-%s-%s.mcpb", runtime.GOOS, runtime.GOARCH)
	data, err := os.ReadFile(filepath.Join(out, own))
	require.NoError(t, err)
	require.Contains(t, said1, fmt.Sprintf("wrote %s (%d bytes, sha256 %s)\n", filepath.Join(out, own), len(data), mcpb.Digest(data)))

	unpacked := t.TempDir()
	files := unpack(t, filepath.Join(out, own), unpacked)
	require.Equal(t, map[string]os.FileMode{"manifest.json": 0o644, "server/shop": 0o755}, files)
	manifest, err := os.ReadFile(filepath.Join(unpacked, "manifest.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"manifest_version": "0.3", "name": "shop", "version": "0.1.0",
		"description": "Shop keeps items with a price, and finds them again.",
		"author": {"name": "ann"},
		"server": {"type": "binary", "entry_point": "server/shop", "mcp_config": {"command": "${__dirname}/server/shop", "args": ["-http", ""],
			"env": {"SHOP_TOKEN": "${user_config.shop_token}", "SHOP_CITY": "${user_config.shop_city}"}}},
		"tools": [
			{"name": "add", "description": "Adds an item, or changes its price."},
			{"name": "find", "description": "Finds the items whose name contains a text, sorted by name."},
			{"name": "remove", "description": "Removes an item, after the user has agreed."}],
		"compatibility": {"platforms": ["`+mcpb.Platform(runtime.GOOS)+`"]},
		"user_config": {
			"shop_token": {"type": "string", "title": "SHOP_TOKEN", "description": "The token of your shop.", "required": true, "sensitive": true},
			"shop_city": {"type": "string", "title": "SHOP_CITY", "description": "Where the shop is.", "required": true, "sensitive": false}}
	}`, string(manifest))

	c, err := client.Dial(t.Context(), client.Command(filepath.Join(unpacked, "server", "shop")))
	require.NoError(t, err)
	require.Equal(t, "shop", c.Server().Name)
	require.NoError(t, c.Close())

	listing, err := os.ReadFile(filepath.Join(out, "server.json"))
	require.NoError(t, err)
	pack := func(file string, data []byte) string {
		return `{"registryType": "mcpb", "identifier": "https://github.com/ann/shop/releases/download/v0.1.0/` + file + `", "fileSha256": "` + mcpb.Digest(data) + `",
			"transport": {"type": "stdio"}, "environmentVariables": [
				{"name": "SHOP_CITY", "description": "Where the shop is.", "isRequired": true, "isSecret": false},
				{"name": "SHOP_TOKEN", "description": "The token of your shop.", "isRequired": true, "isSecret": true}]}`
	}
	require.JSONEq(t, `{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name": "io.github.ann/shop", "description": "Shop keeps items with a price, and finds them again.", "version": "0.1.0",
		"repository": {"url": "https://github.com/ann/shop", "source": "github"},
		"packages": [`+pack(own, data)+`]}`, string(listing))

	// The same source in another folder gives the same bytes, which replace nothing.
	moved := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.CopyFS(moved, os.DirFS(dir)))
	args[1] = moved
	code, again, errs := said(t, args...)
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, said1, again)

	// Other contents are not replaced unasked.
	args[1] = dir
	code, _, errs = said(t, append([]string{"bundle", dir, "-o", out}, "-target", runtime.GOOS+"/"+runtime.GOARCH)...)
	require.Equal(t, exitFault, code)
	require.Equal(t, fmt.Sprintf("mcpkit bundle: %s, server.json in %s would change; write another folder with -o, or replace with -force\n", own, out), errs)
	kept, err := os.ReadFile(filepath.Join(out, own))
	require.NoError(t, err)
	require.Equal(t, data, kept)
	code, _, errs = said(t, "bundle", dir, "-o", out, "-force")
	require.Equal(t, exitOK, code, errs)
	replaced, err := os.ReadFile(filepath.Join(out, own))
	require.NoError(t, err)
	require.NotEqual(t, data, replaced)
}

func TestBundlesAreBuiltForOtherPlatforms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/shop\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	b := &bundling{targets: []string{"windows/amd64, darwin/arm64", "windows/amd64"}, dir: dir, pkg: ".", temp: t.TempDir(), module: "example.com/shop"}
	targets, err := b.platforms()
	require.NoError(t, err)
	require.Equal(t, []platform{{"windows", "amd64"}, {"darwin", "arm64"}}, targets)
	for i, want := range []struct{ platform, file, magic string }{{"win32", "server/shop.exe", "MZ"}, {"darwin", "server/shop", "\xcf\xfa\xed\xfe"}} {
		program, err := b.build(t.Context(), targets[i])
		require.NoError(t, err)
		require.Equal(t, ".exe", filepath.Ext(program), "without it, Windows starts no program")
		data, err := b.pack(&description{info: protocol.Implementation{Name: "Shop"}, version: "1.0.0", text: "Sells."}, targets[i], program, nil)
		require.NoError(t, err)
		bundle, unpacked := filepath.Join(t.TempDir(), "x.mcpb"), t.TempDir()
		require.NoError(t, os.WriteFile(bundle, data, 0o644))
		require.Equal(t, map[string]os.FileMode{"manifest.json": 0o644, want.file: 0o755}, unpack(t, bundle, unpacked))
		built, err := os.ReadFile(filepath.Join(unpacked, filepath.FromSlash(want.file)))
		require.NoError(t, err)
		require.Equal(t, want.magic, string(built[:len(want.magic)]))
		raw, err := os.ReadFile(filepath.Join(unpacked, "manifest.json"))
		require.NoError(t, err)
		var m mcpb.Manifest
		require.NoError(t, json.Unmarshal(raw, &m))
		require.Equal(t, []string{want.platform}, m.Compatibility.Platforms)
		require.Equal(t, "${__dirname}/"+want.file, m.Server.Config.Command)
	}
}

func TestADryRunWritesNoBundle(t *testing.T) {
	t.Parallel()
	dir := newShop(t, "example.com/shop")
	out := filepath.Join(t.TempDir(), "out")
	code, text, errs := said(t, "bundle", dir, "-o", out, "-dry-run", "-version", "2.0.0-rc.1")
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `^would write .*shop-2\.0\.0-rc\.1-.*\.mcpb \(\d+ bytes, sha256 [0-9a-f]{64}\)\n$`, text)
	require.Equal(t, "mcpkit bundle: no server.json: the registry needs -name, such as com.example/shop, and -url, the URL of the folder with the bundles\n", errs)
	require.NoDirExists(t, out)

	code, text, errs = said(t, "bundle", dir, "-o", out, "-dry-run", "-name", "com.example/shop", "-url", "https://example.com/files/")
	require.Equal(t, exitOK, code, errs)
	_, raw, _ := strings.Cut(text, "{")
	var l mcpb.Listing
	require.NoError(t, json.Unmarshal([]byte("{"+raw), &l))
	require.Equal(t, "com.example/shop", l.Name)
	require.Regexp(t, `^https://example\.com/files/shop-0\.1\.0-.*\.mcpb$`, l.Packages[0].Identifier)
}

func TestWhatCannotBeBundledIsReported(t *testing.T) {
	t.Parallel()
	dir := newShop(t, "example.com/shop")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{dir, "-target", "plan9/amd64"}, `mcpkit bundle: -target "plan9/amd64" is not a platform of bundles; write linux, darwin or windows, a slash and an architecture, such as darwin/arm64` + "\n"},
		{[]string{dir, "-target", "linux"}, `-target "linux" is not a platform of bundles`},
		{[]string{dir, "-target", "linux/z80"}, "the program does not build for linux/z80:\ngo: unsupported GOOS/GOARCH pair linux/z80\n"},
		{[]string{dir, "-ask", "A B=c"}, `mcpkit bundle: -ask "A B=c" has to be NAME=description, such as 'SHOP_TOKEN=The token of your shop.'` + "\n"},
		{[]string{dir, "-ask", "TOKEN"}, `-ask "TOKEN" has to be NAME=description`},
		{[]string{dir, "-ask", "CITY=a", "-ask", "City=b"}, `mcpkit bundle: -ask "City=b": the name differs from CITY only in case; give it another one` + "\n"},
		{[]string{dir, "-name", "shop"}, `mcpkit bundle: -name "shop" is not a name in the registry; write for example com.example/shop` + "\n"},
		{[]string{dir, "-name", "com.example/my shop"}, `-name "com.example/my shop" is not a name in the registry`},
		{[]string{dir, "-url", "example.com/files"}, `mcpkit bundle: -url "example.com/files" is not a URL such as https://example.com/files` + "\n"},
		{[]string{dir, "-version", "one"}, `the version "one" is not one such as 1.2.0; write -version` + "\n"},
		{[]string{dir, "-version", "1.2"}, `the version "1.2" is not one such as 1.2.0; write -version` + "\n"},
		{[]string{t.TempDir()}, "is in no module: neither it nor a folder above has a go.mod\n"},
		{[]string{dir, "--", "-nonsense"}, "the program has to start to say what it has: initialize: "},
	} {
		code, out, errs := said(t, append([]string{"bundle", "-dry-run"}, test.args...)...)
		require.Equal(t, exitFault, code, "%q: %s", test.args, out)
		require.Contains(t, errs, test.want, "%q", test.args)
	}
	code, _, errs := said(t, "bundle", "a", "b")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, `"b" is one argument too many`)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.go"), []byte("package main\n\nvar x = y\n"), 0o644))
	code, _, errs = said(t, "bundle", "-dry-run", dir)
	require.Equal(t, exitFault, code)
	require.Contains(t, errs, "./broken.go:3:9: undefined: y\n")
}

func TestDescriptionsAreShortenedAtWords(t *testing.T) {
	require.Equal(t, "One two.", mcpb.Brief(" One\n two.\n\nThree.", 100))
	require.Equal(t, "One…", mcpb.Brief("One, two", 7))
	require.Equal(t, "ééé…", mcpb.Brief("ééééé", 4))
}
