package docsnippets

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func deployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "deploy", name))
	require.NoError(t, err)
	return string(text)
}

// The unit is one that systemd understands. The program has to exist, so the test names another one.
func TestSystemdUnitIsValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	folder := t.TempDir()
	save(t, folder, "ops.service", strings.Replace(deployFile(t, "ops.service"), "/usr/local/bin/ops", bash, 1))
	// It also reports units of this machine, so neither its exit code nor other lines matter.
	out, _ := exec.CommandContext(t.Context(), analyze, "verify", filepath.Join(folder, "ops.service")).CombinedOutput()
	require.NotContains(t, string(out), "ops.service")
}

func TestNginxConfigurationIsValid(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	folder := t.TempDir()
	certificate(t, folder)
	site := strings.NewReplacer("/etc/ssl", folder, "listen 443", "listen unix:"+folder+"/socket").Replace(deployFile(t, "nginx.conf"))
	saveNginx(t, folder, site)
	out, err := exec.CommandContext(t.Context(), nginx, "-t", "-p", folder, "-c", filepath.Join(folder, "nginx.conf")).CombinedOutput()
	require.NoError(t, err, string(out))
}

// saveNginx saves a configuration of nginx that writes into the folder only.
func saveNginx(t *testing.T, folder, site string) {
	t.Helper()
	var paths string
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		paths += kind + "_temp_path " + folder + "/" + kind + ";\n"
	}
	save(t, folder, "nginx.conf", "daemon off;\nmaster_process off;\npid "+folder+"/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n"+paths+site+"}\n")
}

// TestCaddyfileIsValid lets Caddy read the configuration of the guide.
func TestCaddyfileIsValid(t *testing.T) {
	caddy, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("Caddy is not installed")
	}
	file := filepath.Join(root, "docs", "deploy", "Caddyfile")
	out, err := exec.CommandContext(t.Context(), caddy, "adapt", "--validate", "--config", file, "--adapter", "caddyfile").CombinedOutput()
	require.NoError(t, err, string(out))
}

// stopSeconds is how long the example may take to stop: draining, the calls in flight and telemetry.
// Calls may take 5 s more than the default tool timeout.
const stopSeconds = 5 + int(mcpkit.DefaultToolTimeout/time.Second+5) + 5

func TestSystemdGivesTheProgramTimeToStop(t *testing.T) {
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindStringSubmatch(deployFile(t, "ops.service"))
	require.Len(t, found, 2)
	seconds, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	require.Greater(t, seconds, stopSeconds)
}

// The probes ask for paths that the example has, and pods have time to end.
func TestKubernetesProbesExist(t *testing.T) {
	app, err := os.ReadFile(filepath.Join(root, "examples", "ops", "app.go"))
	require.NoError(t, err)
	type probe struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
	}
	var deployment struct {
		Kind string
		Spec struct {
			Template struct {
				Spec struct {
					Grace      int `yaml:"terminationGracePeriodSeconds"`
					Containers []struct {
						Startup   probe `yaml:"startupProbe"`
						Readiness probe `yaml:"readinessProbe"`
						Liveness  probe `yaml:"livenessProbe"`
					}
				}
			}
		}
	}
	documents := yaml.NewDecoder(bytes.NewReader([]byte(deployFile(t, "kubernetes.yaml"))))
	require.NoError(t, documents.Decode(&deployment))
	require.Equal(t, "Deployment", deployment.Kind)
	pod := deployment.Spec.Template.Spec
	require.Greater(t, pod.Grace, stopSeconds)
	require.Len(t, pod.Containers, 1)
	c := pod.Containers[0]
	for _, p := range []probe{c.Startup, c.Readiness, c.Liveness} {
		require.NotEmpty(t, p.HTTPGet.Path)
		require.Contains(t, string(app), `GET("`+p.HTTPGet.Path+`"`)
	}
	require.Equal(t, "/readyz", c.Readiness.HTTPGet.Path, "draining fails it")
	var service struct{ Kind string }
	require.NoError(t, documents.Decode(&service))
	require.Equal(t, "Service", service.Kind)
	require.ErrorIs(t, documents.Decode(&service), io.EOF)
}

// The files in YAML are valid.
func TestEnvoyConfigurationIsYAML(t *testing.T) {
	var envoy struct {
		Static struct {
			Listeners, Clusters []map[string]any
		} `yaml:"static_resources"`
	}
	require.NoError(t, yaml.Load([]byte(deployFile(t, "envoy.yaml")), &envoy))
	require.Len(t, envoy.Static.Listeners, 1)
	require.Len(t, envoy.Static.Clusters, 1)
}
