package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
