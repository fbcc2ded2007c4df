package main

import (
	"os"
	"testing"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) {
	if calledByGoVet(os.Args[1:]) {
		unitchecker.Main(analyzer)
	}
	leaktest.VerifyTestMain(m)
}
