package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/starts"
)

// A serverLog passes the standard error of a server process to the screen, and notes which variables
// it names that the server does not get.
type serverLog struct {
	*starts.Filter
	withheld map[string]bool // the environment variables that the server does not get

	mu        sync.Mutex
	mentioned []string // withheld variables that the server or its results name; guarded by mu
}

func newServerLog(to *screen, withheld []string) *serverLog {
	l := &serverLog{withheld: map[string]bool{}}
	for _, name := range withheld {
		l.withheld[name] = true
	}
	l.Filter = starts.NewFilter(false, func(line []byte, _ bool) {
		l.read(string(line))
		_, _ = to.Write(line)
	})
	return l
}

// variableName matches what may be the name of an environment variable.
var variableName = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{3,}`)

// read looks for withheld variables in a text of the server.
func (l *serverLog) read(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, word := range variableName.FindAllString(text, -1) {
		if l.withheld[word] && !slices.Contains(l.mentioned, word) {
			l.mentioned = append(l.mentioned, word)
		}
	}
}

// notice says which variables the server names and does not get, or "".
func (l *serverLog) notice() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mentioned) == 0 {
		return ""
	}
	flags := "--env " + strings.Join(l.mentioned, " --env ")
	return fmt.Sprintf("%s of your environment is withheld from the server; write %s to pass it on", strings.Join(l.mentioned, ", "), flags)
}

// isGo reports whether a program is the go command.
func isGo(program string) bool { return strings.TrimSuffix(filepath.Base(program), ".exe") == "go" }

// goVariables returns the variables of the environment that belong to the go command, such as
// GOFLAGS, if the program is the go command.
func goVariables(program string) []string {
	if !isGo(program) {
		return nil
	}
	text, err := exec.Command(program, "env", "-json").Output()
	var known map[string]string
	if err != nil || json.Unmarshal(text, &known) != nil {
		return nil // the go command will say why
	}
	var all []string
	for name := range known {
		if value, set := os.LookupEnv(name); set {
			all = append(all, name+"="+value)
		}
	}
	return all
}
