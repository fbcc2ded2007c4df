package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/broker"
)

// newBroker returns a broker whose users log in at oidc-provider.
func newBroker(t *testing.T, url string) *broker.Broker {
	provider := serve(t, func(addr string) *exec.Cmd {
		return node(t, "provider.mjs", object{"addr": addr, "redirect": url + "/callback"})
	})
	b, err := broker.New(broker.Options{
		Issuer: url, Resource: url + "/mcp", Name: "Diary", InsecureLoopback: true,
		Provider: broker.Provider{
			Name: "oidc-provider", Issuer: "http://" + provider, ClientID: "broker", ClientSecret: "upstream-secret",
			Scopes: []string{"offline_access"}, Params: map[string]string{"prompt": "consent"}, UserInfo: true,
		},
		Domains: []string{"example.com"},
		Scopes:  map[string][]string{"diary:read": nil, "diary:write": nil},
		Keys:    [][]byte{bytes.Repeat([]byte("k"), 32)},
		Logger:  slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func serveDiaryBehindBroker(t *testing.T) (url string) {
	mux, url := newSite(t)
	b := newBroker(t, url)
	mux.Handle("/", b)
	return guardDiary(t, mux, b.ResourceOptions())
}

// A person has a browser, is logged in at the provider, and allows every program what it asks for.
type person struct {
	http  *http.Client
	asked url.Values // the parameters of the last login
}

func newPerson(name string) *person {
	jar, _ := cookiejar.New(nil) // never fails
	jar.SetCookies(&url.URL{Scheme: "http", Host: "127.0.0.1"}, []*http.Cookie{{Name: "user", Value: name}})
	return &person{http: &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), via[0].URL.Query().Get("redirect_uri")) {
			return http.ErrUseLastResponse
		}
		return nil
	}}}
}

var consentForm = regexp.MustCompile(`(?s)<form method="post" action="([^"]+)".* name="login" value="([^"]+)"`)

// visit opens a login page, and returns the URL that leads back to the program.
func (p *person) visit(ctx context.Context, page string) (back *url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	p.asked = req.URL.Query()
	resp, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if back, err = resp.Location(); err == nil {
		return back, nil
	}
	text, err := io.ReadAll(resp.Body)
	form := consentForm.FindSubmatch(text)
	if err != nil || form == nil {
		return nil, fmt.Errorf("%s is not a form: %w, %s", resp.Request.URL, err, text)
	}
	allowed, err := p.http.PostForm(html.UnescapeString(string(form[1])), url.Values{
		"login": {string(form[2])}, "decision": {"allow"},
	})
	if err != nil {
		return nil, err
	}
	defer allowed.Body.Close()
	return url.Parse(strings.TrimPrefix(allowed.Header.Get("Refresh"), "0; url="))
}

// run runs a program, logs in when it says where, and returns what it prints.
func (p *person) run(t *testing.T, cmd *exec.Cmd) string {
	var out bytes.Buffer
	cmd.Stdout = &out
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines, log := bufio.NewScanner(said), ""
	for lines.Scan() {
		log += lines.Text() + "\n"
		if _, page, ok := strings.Cut(lines.Text(), "http://"); ok && strings.Contains(page, "/authorize?") {
			back, err := p.visit(t.Context(), "http://"+page)
			require.NoError(t, err)
			resp, err := p.http.Get(back.String())
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
		}
	}
	require.NoError(t, cmd.Wait(), "%s%s", log, &out)
	return out.String()
}

func TestOurCommandLogsInAtABroker(t *testing.T) {
	row(t, func(t *testing.T) {
		user, url, tokens := newPerson("ada"), serveDiaryBehindBroker(t), t.TempDir()
		for _, step := range []struct {
			args        []string
			want, login string
		}{
			{[]string{"read"}, "[]", "diary:read"},
			{[]string{"write", "text=It rained."}, "Written, ada.", "diary:read diary:write"},
			{[]string{"read"}, `["It rained."]`, ""}, // with a new token
		} {
			user.asked = nil
			args := append([]string{"call", "--login", "--no-browser", "--tokens", tokens, url}, step.args...)
			got := user.run(t, exec.Command(program(t, "cmd/mcpkit"), args...))
			require.Equal(t, step.want, strings.TrimSpace(got))
			require.Equal(t, step.login, user.asked.Get("scope"))
			spoil(t, tokens)
		}
	}, "mcpkit command at mcpkit broker login", modern)
}

var accessToken = regexp.MustCompile(`"access_token":"[^"]+"`)

// spoil replaces the access tokens in the files of a folder, so that the program must refresh them.
func spoil(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, accessToken.ReplaceAll(text, []byte(`"access_token":"spoiled"`)), 0o600))
	}
}

// The Inspector asks for all scopes at once. It keeps tokens in the keychain only, so one call is all.
func TestInspectorLogsInAtABroker(t *testing.T) {
	row(t, func(t *testing.T) {
		user, url := newPerson("bob"), serveDiaryBehindBroker(t)
		cmd := node(t, "../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", nil)
		cmd.Args = append(cmd.Args[:2], "--cli", "--server-url", url, "--transport", "http",
			"--callback-url", "http://"+freeAddr(t)+"/oauth/callback", "--format", "json", "--quiet",
			"--method", "tools/call", "--tool-name", "write", "--tool-arg", "text=It rained.")
		cmd.Env = []string{"HOME=" + t.TempDir(), "MCP_AUTO_OPEN_ENABLED=true"}
		require.Contains(t, user.run(t, cmd), `"text":"Written, bob."`)
		require.Equal(t, "diary:read diary:write", user.asked.Get("scope"))
	}, "@modelcontextprotocol/inspector at mcpkit broker login", latest)
}
