package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/mcpb"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// bundling holds the flags and the state of the command bundle.
type bundling struct {
	folder   string
	version  string
	targets  []string
	name     string
	url      string
	author   string
	settings []string
	dryRun   bool
	force    bool
	out, err *screen

	dir, pkg string // where to build, and what
	module   string // the path of the module
	args     []string
	temp     string
}

func bundleCommand(std streams) *cobra.Command {
	b := &bundling{out: newScreen(std.out), err: newScreen(std.err)}
	cmd := &cobra.Command{
		Use:   "bundle [PACKAGE] [-- ARGUMENT ...]",
		Short: "pack a server for chat clients and for the registry",
		Long: `Builds the program of a PACKAGE (default: the one in the current folder) and
packs it as an MCP bundle (.mcpb), a file that chat clients install, for each
target. Name, version, description and tools come from the program, which
starts for this. The arguments become those with which hosts start it.

server.json describes the bundles for the registry of MCP servers, with their
URLs and digests. The names of modules at github.com give the name there and
the URLs; for others write -name and -url.

The same source gives the same bytes. Files that exist with other contents are
not replaced without -force.`,
		GroupID: groupSetup,
		RunE: func(cmd *cobra.Command, args []string) error {
			pkg, arguments, err := programArguments(cmd, args)
			if err != nil {
				return err
			}
			b.args = arguments
			return failed(cmd, b.run(cmd.Context(), pkg))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&b.folder, "o", ".", "the `folder` to write into")
	flags.StringVar(&b.version, "version", "", "the `version`, such as 1.2.0; default: the one that the program reports")
	flags.StringArrayVar(&b.targets, "target", nil, "a `platform`, such as darwin/arm64, or several, separated by commas; may be repeated; default: this one")
	flags.StringVar(&b.name, "name", "", "the `name` in the registry, such as com.example/shop")
	flags.StringVar(&b.url, "url", "", "the `URL` of the folder from which the bundles will be downloaded")
	flags.StringVar(&b.author, "author", "", "the `name` of the author; default: the owner of the repository, or the host of the module path")
	flags.StringArrayVar(&b.settings, "ask", nil, "an environment variable that hosts ask their users for, as `NAME=description`; may be repeated. Names with KEY, TOKEN, SECRET or PASSWORD are secrets")
	flags.BoolVar(&b.dryRun, "dry-run", false, "print what would be written, and write nothing")
	flags.BoolVar(&b.force, "force", false, "replace files with other contents")
	return cmd
}

// run builds, asks, packs and writes.
func (b *bundling) run(ctx context.Context, named string) (err error) {
	targets, err := b.platforms()
	if err != nil {
		return err
	}
	settings, err := b.asked()
	if err != nil {
		return err
	}
	if b.name != "" && !registryName.MatchString(b.name) {
		return fmt.Errorf("-name %q is not a name in the registry; write for example com.example/shop", b.name)
	}
	if u, err := url.Parse(b.url); b.url != "" && (err != nil || !overHTTP(b.url) || u.Host == "") {
		return fmt.Errorf("-url %q is not a URL such as https://example.com/files", b.url)
	}
	if b.dir, b.pkg, err = findProgram("", named); err != nil {
		return err
	}
	if b.module, err = modulePathOf(b.dir); err != nil {
		return err
	}
	if b.temp, err = os.MkdirTemp("", "mcpkit-bundle-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.temp)) }()
	own, err := b.build(ctx, platform{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return err
	}
	about, err := b.ask(ctx, own)
	if err != nil {
		return err
	}
	var files []output
	packages := []mcpb.Package{}
	for _, p := range targets {
		program, err := b.build(ctx, p)
		if err != nil {
			return err
		}
		data, err := b.pack(about, p, program, settings)
		if err != nil {
			return err
		}
		file := output{fmt.Sprintf("%s-%s-%s-%s.mcpb", about.file(), about.version, p.os, p.arch), data}
		files = append(files, file)
		packages = append(packages, mcpb.Package{RegistryType: "mcpb", Identifier: file.name, FileSHA256: mcpb.Digest(data),
			Transport: mcpb.Transport{Type: "stdio"}, Environment: variables(settings)})
	}
	if listing := b.list(about, packages); listing != nil {
		data, err := mcpb.Encode(listing)
		if err != nil {
			return err
		}
		files = append(files, output{"server.json", data})
	}
	return b.write(files)
}

// registryName matches the names that the schema of server.json allows.
var registryName = regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`)

// A platform is where a program runs.
type platform struct{ os, arch string }

// platforms returns the targets.
func (b *bundling) platforms() (all []platform, err error) {
	for _, flag := range b.targets {
		for name := range strings.SplitSeq(flag, ",") {
			goos, arch, ok := strings.Cut(strings.TrimSpace(name), "/")
			if !ok || arch == "" || mcpb.Platform(goos) == "" {
				return nil, fmt.Errorf("-target %q is not a platform of bundles; write linux, darwin or windows, a slash and an architecture, such as darwin/arm64", name)
			}
			if p := (platform{goos, arch}); !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	if all == nil {
		if mcpb.Platform(runtime.GOOS) == "" {
			return nil, errors.New("bundles do not run on this system; write -target linux/amd64 for example")
		}
		all = []platform{{runtime.GOOS, runtime.GOARCH}}
	}
	return all, nil
}

// variableNames matches names of environment variables.
var variableNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secretName matches names of variables that hold secrets.
var secretName = regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSWORD`)

// asked returns the settings, by the names of the variables.
func (b *bundling) asked() (map[string]mcpb.Setting, error) {
	settings := map[string]mcpb.Setting{}
	for _, flag := range b.settings {
		name, description, _ := strings.Cut(flag, "=")
		if !variableNames.MatchString(name) || strings.TrimSpace(description) == "" {
			return nil, fmt.Errorf("-ask %q has to be NAME=description, such as 'SHOP_TOKEN=The token of your shop.'", flag)
		}
		for other := range settings {
			if name != other && strings.EqualFold(name, other) {
				return nil, fmt.Errorf("-ask %q: the name differs from %s only in case; give it another one", flag, other)
			}
		}
		settings[name] = mcpb.Setting{Type: "string", Title: name, Description: strings.TrimSpace(description), Required: true, Sensitive: secretName.MatchString(name)}
	}
	return settings, nil
}

// variables returns the settings for server.json.
func variables(settings map[string]mcpb.Setting) (all []mcpb.Variable) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s := settings[name]
		all = append(all, mcpb.Variable{Name: name, Description: s.Description, IsRequired: s.Required, IsSecret: s.Sensitive})
	}
	return all
}

// modulePathOf returns the path of the module of a folder.
func modulePathOf(dir string) (string, error) {
	root := moduleRoot(dir)
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if root == "" || err != nil {
		return "", fmt.Errorf("%s is in no module: neither it nor a folder above has a go.mod", dir)
	}
	path := modfile.ModulePath(gomod)
	if path == "" {
		return "", fmt.Errorf("%s has no module path", filepath.Join(root, "go.mod"))
	}
	return path, nil
}

// build builds the program for a platform and returns its path. The same source gives the same
// bytes: no paths, no commit, and no build ID.
func (b *bundling) build(ctx context.Context, p platform) (string, error) {
	path := filepath.Join(b.temp, p.os+"-"+p.arch+".exe") // Windows starts nothing else
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	cmd := services.Go(ctx, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path, "--", b.pkg)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch)
	if os.Getenv("CGO_ENABLED") == "" { // programs with C need a compiler for each target
		cmd.Env = append(cmd.Env, "CGO_ENABLED=0")
	}
	if output, err := cmd.CombinedOutput(); err != nil {
		text := strings.TrimSpace(string(output))
		if text == "" {
			text = err.Error()
		}
		return "", fmt.Errorf("the program does not build for %s/%s:\n%s", p.os, p.arch, text)
	}
	return path, nil
}

// A description is what the program says about itself.
type description struct {
	info    protocol.Implementation
	version string // may be that of a flag
	text    string // the description
	tools   []mcpb.Tool
	prompts bool
}

// file returns the beginning of the names of files.
func (d *description) file() string {
	return strings.ToLower(strings.Trim(unfit.ReplaceAllString(d.info.Name, "-"), "-"))
}

// askTimeout is how long the program may take to say what it has.
const askTimeout = time.Minute

// ask starts the program and asks what it has.
func (b *bundling) ask(ctx context.Context, program string) (*description, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	target := client.Command(program, b.args...)
	target.Dir, target.InheritEnv = b.dir, true
	c, err := client.Dial(ctx, target, client.Stderr(nil), client.Logger(slog.New(slog.DiscardHandler)), client.ShutdownTimeout(shutdownTimeout))
	if err != nil {
		return nil, fmt.Errorf("the program has to start to say what it has: %s", strings.TrimPrefix(err.Error(), "client: "))
	}
	defer c.Close()
	d := &description{info: c.Server(), version: b.version}
	if d.version == "" {
		d.version = strings.TrimPrefix(d.info.Version, "v")
	}
	if !semver.IsValid("v"+d.version) || strings.Count(d.version, ".") < 2 {
		return nil, fmt.Errorf("the version %q is not one such as 1.2.0; write -version", d.version)
	}
	if d.file() == "" {
		return nil, errors.New("the program reports no name; give it one, such as mcpkit.Info `name:\"shop\"`")
	}
	bare := 0
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		if tool.Description == "" {
			bare++
		}
		d.tools = append(d.tools, mcpb.Tool{Name: tool.Name, Description: tool.Description})
	}
	slices.SortFunc(d.tools, func(a, b mcpb.Tool) int { return strings.Compare(a.Name, b.Name) })
	d.prompts = c.Capabilities().Prompts != nil
	if bare > 0 {
		b.err.printf("mcpkit bundle: %d of %d tools have no description without the source; run mcpkit gen, and bundle again\n", bare, len(d.tools))
	}
	for _, text := range []string{d.info.Description, c.Instructions(), "The MCP server " + d.info.Name + "."} {
		if d.text == "" {
			d.text = mcpb.Brief(text, 1000)
		}
	}
	return d, nil
}

// pack returns a bundle with the program.
func (b *bundling) pack(d *description, p platform, program string, settings map[string]mcpb.Setting) ([]byte, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	path := "server/" + d.file()
	if p.os == "windows" {
		path += ".exe"
	}
	m := &mcpb.Manifest{
		ManifestVersion: mcpb.ManifestVersion, Name: d.file(), DisplayName: d.info.Title, Version: d.version, Description: d.text,
		Author: mcpb.Author{Name: b.authorName()}, Homepage: d.info.WebsiteURL,
		Server: mcpb.Program{Type: "binary", EntryPoint: path, Config: mcpb.Command{Command: "${__dirname}/" + path, Args: b.args}},
		Tools:  d.tools, PromptsGenerated: d.prompts, Compatibility: mcpb.Compatibility{Platforms: []string{mcpb.Platform(p.os)}},
	}
	for name, s := range settings {
		if m.UserConfig == nil {
			m.UserConfig, m.Server.Config.Env = map[string]mcpb.Setting{}, map[string]string{}
		}
		key := strings.ToLower(name)
		m.UserConfig[key], m.Server.Config.Env[name] = s, "${user_config."+key+"}"
	}
	return mcpb.Pack(m, mcpb.File{Name: path, Data: data, Executable: true})
}

// forge matches the module paths of repositories.
var forge = regexp.MustCompile(`^(github\.com|gitlab\.com)/([^/]+)/([^/]+)`)

// authorName returns the name of the author.
func (b *bundling) authorName() string {
	if b.author != "" {
		return b.author
	}
	if m := forge.FindStringSubmatch(b.module); m != nil {
		return m[2]
	}
	host, _, _ := strings.Cut(b.module, "/")
	return host
}

// list returns the description for the registry, or nil if its name or the URLs are not known. The
// identifiers of the packages are the names of the files.
func (b *bundling) list(d *description, packages []mcpb.Package) *mcpb.Listing {
	l := &mcpb.Listing{Schema: mcpb.ListingSchema, Name: b.name, Title: d.info.Title, Description: mcpb.Brief(d.text, mcpb.MaxDescription),
		Version: d.version, WebsiteURL: d.info.WebsiteURL, Packages: packages}
	folder := b.url
	if m := forge.FindStringSubmatch(b.module); m != nil {
		source, _, _ := strings.Cut(m[1], ".")
		l.Repository = &mcpb.Repository{URL: "https://" + m[0], Source: source}
		if l.Name == "" {
			l.Name = "io." + source + "." + m[2] + "/" + d.file()
		}
		if folder == "" && source == "github" {
			folder = "https://" + m[0] + "/releases/download/v" + d.version
		}
	}
	if l.Name == "" || folder == "" {
		b.err.printf("mcpkit bundle: no server.json: the registry needs -name, such as com.example/%s, and -url, the URL of the folder with the bundles\n", d.file())
		return nil
	}
	for i := range packages {
		packages[i].Identifier = strings.TrimSuffix(folder, "/") + "/" + packages[i].Identifier
	}
	return l
}

// An output is a file to write.
type output struct {
	name string
	data []byte
}

// write writes the files, unless one of them exists with other contents.
func (b *bundling) write(files []output) error {
	var others []string
	for _, f := range files {
		old, err := os.ReadFile(filepath.Join(b.folder, f.name))
		if err == nil && !bytes.Equal(old, f.data) {
			others = append(others, f.name)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(others) > 0 && !b.force {
		return fmt.Errorf("%s in %s would change; write another folder with -o, or replace with -force", strings.Join(others, ", "), b.folder)
	}
	if !b.dryRun {
		if err := os.MkdirAll(b.folder, 0o755); err != nil {
			return err
		}
	}
	for _, f := range files {
		path := filepath.Join(b.folder, f.name)
		if b.dryRun {
			b.out.printf("would write %s (%d bytes, sha256 %s)\n", path, len(f.data), mcpb.Digest(f.data))
			if f.name == "server.json" {
				b.out.printf("%s", f.data)
			}
			continue
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return err
		}
		b.out.printf("wrote %s (%d bytes, sha256 %s)\n", path, len(f.data), mcpb.Digest(f.data))
	}
	return nil
}
