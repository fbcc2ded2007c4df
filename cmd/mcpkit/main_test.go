package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func TestMain(m *testing.M) {
	if calledByGoVet(os.Args[1:]) {
		unitchecker.Main(analyzer)
	}
	goleak.VerifyTestMain(m)
}
