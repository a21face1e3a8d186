package local

import (
	"testing"

	"treeline/internal/sandbox/sandboxtest"
)

func TestConformance(t *testing.T) { sandboxtest.Run(t, newDriver(t)) }
